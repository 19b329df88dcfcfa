"""Answers about numbers and forecasts, with their errors, and decisions."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor

from models.evaluation.calibration import NumberCalibration
from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.likelihoods.class_mixture import CategoricalMixture
from models.likelihoods.families import Family, Logistic, Normal
from models.likelihoods.number_mixture import NumberMixture
from models.likelihoods.quantiles import TAIL
from models.prediction.options import Costs, Density, PredictOptions, ResolvedOptions
from models.prediction.outputs import decisions, questions
from models.prediction.outputs.numbers import QUESTIONS
from models.prediction.outputs.question import Question
from models.prediction.prediction import summarise
from tests.models.forecasting.series_cases import LOGARITHM
from tests.models.prediction.shaped_cases import CASES, ROWS, Case

EXCEEDS, QUANTILES, DENSITY = QUESTIONS
CONTINUOUS = [case for case in CASES if not case.integer]


def gaussians(*components: tuple[float, float]) -> NumberMixture:
    """One row, a sample per mean and standard deviation."""
    means, deviations = torch.tensor(components, dtype=torch.float64).T.unsqueeze(-1)
    return NumberMixture.gaussian(means, deviations.square())


def asked(question: Question, mixture: NumberMixture, options: PredictOptions) -> dict[str, Tensor]:
    assert question.of_mixture is not None
    return question.of_mixture(mixture, options, None)


def drawn(mixture: NumberMixture, points: int) -> tuple[np.ndarray, np.ndarray]:
    """The values and their density, points × rows."""
    options = PredictOptions(density=Density(points))
    found = asked(DENSITY, mixture, options)
    return found["density_values"].T.numpy(), found["density"].T.numpy()


def test_the_density_of_gaussians_is_closed() -> None:
    values, found = drawn(gaussians((0.0, 1.0), (4.0, 0.5)), 64)
    expected = 0.5 * (stats.norm.pdf(values, 0, 1) + stats.norm.pdf(values, 4, 0.5))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("ratio", [10.0, 100.0, 1e3])
def test_the_grid_finds_narrow_peaks(ratio: float) -> None:
    """A peak has half of the probability, and so about a quarter of the values."""
    values, found = drawn(gaussians((0.0, 1.0), (0.3, 1.0 / ratio)), 64)
    assert found.max() > 0.98 * 0.5 * stats.norm.pdf(0, 0, 1 / ratio)
    assert (np.abs(values - 0.3) < 3 / ratio).sum() >= 12


@pytest.mark.parametrize("case", CONTINUOUS, ids=str)
def test_densities_integrate_to_what_the_atoms_leave(case: Case) -> None:
    values, found = drawn(case.mixture, 128)
    left = 1 - case.mixture.atom_probabilities().sum(0).numpy()
    area = np.trapezoid(found, values, axis=0)
    np.testing.assert_allclose(area / left, 1 - 2 * TAIL, atol=0.015)
    assert (np.diff(values, axis=0) >= 0).all()


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_the_stated_errors_are_those_of_repeated_samples(scale: float) -> None:
    """Posterior means N(0, 1) with noise 1, and a calibration that scales both about their mean.

    The standard deviation of 600 repetitions is known to 3 %, so that five of them are 15 %. The
    density is compared at the same values in every repetition.
    """
    random = torch.Generator().manual_seed(0)
    means = torch.randn(40, 600, generator=random, dtype=torch.float64)
    raw = NumberMixture.gaussian(means, torch.ones_like(means))
    mixture = NumberCalibration(scale, (), 10).apply(raw)
    assert isinstance(mixture, NumberMixture)

    def error(parts: torch.Tensor) -> torch.Tensor:
        return parts.std(0) / len(parts) ** 0.5

    options = PredictOptions(
        quantiles=(0.1, 0.7), exceeds=(-2.0, 3.0), density=Density(3), return_mc_errors=True
    )
    found = questions.of_mixture(mixture, options, None)
    found["density_values"] = torch.tensor([-1.0, 0.4, 2.5]).double().expand(600, -1)
    stated = questions.errors_of(mixture, raw, found, options, error)
    for name in ("quantile", "exceeds"):
        each = stated[name].square().mean(0).sqrt()
        torch.testing.assert_close(each, found[name].std(0), rtol=0.15, atol=0)
    grid, errors = found["density_values"], stated["density"]
    actual = mixture.density(grid.T).std(1)
    torch.testing.assert_close(errors.square().mean(0).sqrt(), actual, rtol=0.15, atol=0)


MEANS = torch.tensor([[0.0, 1.0], [2.0, 5.0]], dtype=torch.float64)
VARIANCES = torch.tensor([[1.0, 4.0], [9.0, 1.0]], dtype=torch.float64)


def test_the_probability_is_the_mean_of_the_components_survival_functions() -> None:
    """To 1e-12 of itself, also where it is 1e-100 and 1 − cdf would be 0."""
    options = PredictOptions(exceeds=(-1.0, 3.0, 12.0, 60.0))
    found = asked(EXCEEDS, NumberMixture.gaussian(MEANS, VARIANCES), options)["exceeds"]
    deviations = VARIANCES.sqrt().numpy()
    expected = [stats.norm.sf(t, MEANS.numpy(), deviations).mean(0) for t in options.exceeds]
    np.testing.assert_allclose(found.numpy(), np.stack(expected, axis=-1), rtol=1e-12)
    assert float(found[1, -1]) < 1e-100


@pytest.mark.parametrize(
    ("family", "truth"), [(Normal(), stats.norm), (Logistic(), stats.logistic)]
)
def test_families_keep_the_digits_of_their_tails(family: Family, truth: stats.norm) -> None:
    t = torch.linspace(-36, 36, 601, dtype=torch.float64)
    np.testing.assert_allclose(family.survival(t).numpy(), truth.sf(t.numpy()), rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_shaped_mixtures_exceed_what_they_are_not_up_to(case: Case) -> None:
    """1 − P(Y ≤ t) by scipy, at thresholds on atoms, whole numbers, bounds and outside them."""
    y = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 3.5, 7.0, 12.0, 29.5, 30.0, 31.0])
    found = case.mixture.survival(torch.from_numpy(y).unsqueeze(-1).expand(-1, ROWS))
    for row in range(ROWS):
        np.testing.assert_allclose(found[:, row].numpy(), 1 - case.cdf(y, row), atol=2e-7)


DRAWS, PATHS, STEPS = 50, 4, 3
ASKED = PredictOptions(
    exceeds=(0.2, 1.5, 40.0, -1.0),
    quantiles=(0.9, 0.05),
    density=Density(32),
    return_mc_errors=True,
)


def forecast(*, is_log: bool, seed: int = 0, samples: int = DRAWS) -> Forecast:
    random = torch.Generator().manual_seed(seed)
    shape = (samples, PATHS, 1, STEPS)
    of_draw = torch.randn(samples, 1, 1, STEPS, generator=random, dtype=torch.float64)
    means = 0.5 + 0.3 * of_draw + 0.1 * torch.randn(shape, generator=random, dtype=torch.float64)
    variances = torch.full_like(means, 0.25)
    observation = LOGARITHM if is_log else PLAIN
    return Forecast(Paths(means, means, variances, means), observation)


@pytest.mark.parametrize("is_log", [False, True])
def test_answers_are_of_the_mixture_of_all_paths(is_log: bool) -> None:
    one = forecast(is_log=is_log)
    found, means = one.summarise(ASKED), one.mixture.locs[:, 0].numpy()
    truth = stats.lognorm(0.5, scale=np.exp(means)) if is_log else stats.norm(means, 0.5)
    for i, threshold in enumerate(ASKED.exceeds):
        expected = truth.sf(threshold).mean(0)
        np.testing.assert_allclose(found["exceeds"][:, i], expected, rtol=1e-12)
    for i, level in enumerate(ASKED.quantiles):
        values = found["quantile"][:, i]
        np.testing.assert_allclose(truth.cdf(values).mean(0), level, atol=1e-6)
    for step in range(STEPS):
        values, density = (found[name][step] for name in ("density_values", "density"))
        expected = [truth.pdf(value)[:, step].mean() for value in values]
        np.testing.assert_allclose(density, expected, rtol=1e-9)
        assert np.trapezoid(density, values) == pytest.approx(0.998, abs=0.01)


@pytest.mark.parametrize("is_log", [False, True])
def test_the_stated_errors_are_those_of_other_draws(is_log: bool) -> None:
    """The deviation over 200 forecasts is known to 5 %, the mean stated error far better."""
    asked = PredictOptions(exceeds=(1.5,), quantiles=(0.9,), return_mc_errors=True)
    runs = [forecast(is_log=is_log, seed=seed).summarise(asked) for seed in range(200)]
    for name in ("exceeds", "quantile"):
        actual = np.stack([run[name] for run in runs]).std(0)
        stated = np.sqrt(np.mean([run.errors[name] ** 2 for run in runs], axis=0))
        np.testing.assert_allclose(stated, actual, rtol=0.2)


WALKS, EACH, LENGTH = 200, 25, 5


def _walk(drift: float) -> Forecast:
    """Two random walks with steps of deviation 1, the second with a drift; no weight is unsure."""
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(WALKS, EACH, 2, LENGTH, generator=random, dtype=torch.float64)
    noise[:, :, 1] += drift
    values = noise.cumsum(-1)
    means = values - noise
    means[:, :, 1] += drift
    return Forecast(Paths(values, means, torch.ones_like(means), means), PLAIN)


def _truth(threshold: float, drift: float) -> np.ndarray:
    """P(max_{k≤h} > t) of a walk, by integration of the density of paths that stay below."""
    grid = np.linspace(threshold - 14, threshold, 561)
    width = grid[1] - grid[0]
    stay = stats.norm(drift).pdf(grid)
    kernel = stats.norm(drift).pdf(grid[:, None] - grid[None, :])
    found = [stats.norm(drift).sf(threshold)]
    weights = np.full(len(grid), width)
    weights[[0, -1]] /= 2
    for _ in range(LENGTH - 1):
        stay = kernel @ (weights * stay)
        found.append(1 - (weights * stay).sum())
    return np.array(found)


@pytest.mark.parametrize("threshold", [0.0, 1.5, 4.0])
def test_the_probability_of_ever_exceeding_is_that_of_a_walks_maximum(threshold: float) -> None:
    """5,000 paths: a standard error of 0.7 points; the first step is exact."""
    asked = PredictOptions(exceeds=(threshold, -threshold), intervals=())
    found = _walk(0.3).summarise(asked)
    above = found["any_above"][:, 0].reshape(2, LENGTH)
    for i, drift in enumerate((0.0, 0.3)):
        truth = _truth(threshold, drift)
        np.testing.assert_allclose(above[i], truth, atol=0.025)
        assert above[i, 0] == pytest.approx(truth[0], abs=1e-9)
    below = _walk(-0.3).summarise(asked)["any_below"][:, 1].reshape(2, LENGTH)
    np.testing.assert_allclose(below[1], _truth(threshold, 0.3), atol=0.025)


PER_UNIT = ((1.0, 1.0), (1.0, 4.0), (3.0, 0.5), (1.0, 40.0))


def known_gaussians() -> NumberMixture:
    random = np.random.default_rng(0)
    means, noise = random.normal(size=(5, 4)), random.uniform(0.2, 2.0, (5, 4))
    return NumberMixture.gaussian(torch.from_numpy(means), torch.from_numpy(noise))


def decide(mixture: NumberMixture, over: float, under: float) -> dict[str, torch.Tensor]:
    return decisions.of_mixture(mixture, decided(over=over, under=under), None)


def integrated_cost(case: Case, value: float, over: float, under: float, row: int) -> float:
    """The expected cost by Riemann–Stieltjes sums over the range in which means are computed."""
    ends = torch.tensor(case.target.z_extremes, dtype=torch.float64)
    low, high = case.target.from_z(ends).tolist()
    if case.integer:
        nodes = np.arange(*(round(low), round(high) + 1), dtype=float)
    else:
        nodes = np.unique(np.concatenate([np.linspace(low, high, 40_001), [value, *case.atoms]]))
    return sum_of_costs(case.cdf(nodes, row), nodes, value, over, under, whole=case.integer)


def sum_of_costs(
    cdf: np.ndarray, nodes: np.ndarray, value: float, over: float, under: float, *, whole: bool
) -> float:
    """over ∫ F up to the value, under ∫ (1 − F) from there."""
    below = nodes[:-1] < value - 1e-12
    middle = cdf[:-1] if whole else 0.5 * (cdf[:-1] + cdf[1:])
    steps = np.diff(nodes)
    short = (middle * steps)[below].sum()
    return float(over * short + under * ((1 - middle) * steps)[~below].sum())


@pytest.mark.parametrize(("over", "under"), PER_UNIT)
def test_the_expected_cost_is_that_of_integration(over: float, under: float) -> None:
    mixture = known_gaussians()
    found = decide(mixture, over, under)
    for row, action in enumerate(found["action"].tolist()):

        def cost(y: float, row: int = row, action: float = action) -> float:
            components = stats.norm(mixture.locs[:, 0, row], mixture.scales[:, 0, row])
            loss = over * max(action - y, 0) + under * max(y - action, 0)
            return float(loss * components.pdf(y).mean())

        expected = integrate.quad(cost, -12, 12, points=[action], limit=200)[0]
        assert found["expected_cost"][row].item() == pytest.approx(expected, rel=1e-7)


def test_known_weights_leave_the_cost_of_the_noise() -> None:
    """E_w min_a E(cost | w), by minimising for each sample; with equal samples nothing is saved."""
    mixture, (over, under) = known_gaussians(), (1.0, 4.0)
    found = decide(mixture, over, under)
    level = under / (over + under)
    for row in range(4):
        least = []
        for mean, noise in zip(
            mixture.locs[:, 0, row], mixture.noise_variances()[:, row], strict=True
        ):
            one = NumberMixture.gaussian(mean.view(1, 1), noise.view(1, 1))
            best = stats.norm.ppf(level, mean, noise.sqrt())
            least.append(one.pinball(torch.tensor([best]), over, under).item())
        saved = found["expected_cost"][row].item() - np.mean(least)
        assert found["value_of_model_information"][row].item() == pytest.approx(saved, rel=1e-6)
    same = NumberMixture.gaussian(
        *(part[:1, 0].expand(3, -1) for part in (mixture.locs, mixture.scales.square()))
    )
    value = decide(same, over, under)["value_of_model_information"]
    torch.testing.assert_close(value, torch.zeros_like(value), atol=1e-12, rtol=0)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize(("over", "under"), PER_UNIT[1:3])
def test_costs_of_shapes_are_integrals(case: Case, over: float, under: float) -> None:
    """Atoms, whole numbers and scales; values far outside count as the extremes, as in means."""
    found = decide(case.mixture, over, under)
    for row in range(ROWS):
        action = found["action"][row].item()
        expected = integrated_cost(case, action, over, under, row)
        # Beyond the extremes sums have nothing, while closed forms of the identity scale do.
        tolerance = 0.02 if case.scale == "identity" and not case.integer else 2e-4
        assert found["expected_cost"][row].item() == pytest.approx(expected, rel=tolerance)


def classes() -> CategoricalMixture:
    random = torch.Generator().manual_seed(0)
    return CategoricalMixture(2 * torch.randn(6, 50, 3, generator=random, dtype=torch.float64))


MATRIX = ((0.0, 5.0, 1.0), (2.0, -1.0, 3.0), (1.0, 1.0, 1.0), (4.0, 0.5, 0.0))


def test_the_action_is_the_cheapest_of_all_by_enumeration() -> None:
    mixture, matrix = classes(), np.array(MATRIX)
    found = decisions.decide_class(mixture, torch.tensor(MATRIX).double())
    samples = mixture.probs.numpy()
    for row in range(50):
        mean = samples[:, row].mean(0)
        costs = [sum(c * p for c, p in zip(line, mean, strict=True)) for line in matrix]
        best = int(np.argmin(costs))
        assert found["action"][row].item() == best
        assert found["expected_cost"][row].item() == pytest.approx(costs[best])
        informed = sum(p * min(matrix[:, k]) for k, p in enumerate(mean))
        information = found["value_of_information"][row].item()
        assert information == pytest.approx(costs[best] - informed, abs=1e-12)
        known = np.mean([min(matrix @ one) for one in samples[:, row]])
        of_model = found["value_of_model_information"][row].item()
        assert of_model == pytest.approx(costs[best] - known, abs=1e-12)
        assert 0 <= of_model <= information + 1e-12


def test_errors_are_those_of_repeated_sampling() -> None:
    """The standard deviation over repetitions; the estimate from 400 samples is good to 10 %."""
    random = np.random.default_rng(1)

    def draw() -> NumberMixture:
        means = random.normal(size=(400, 3)) * [0.5, 1.0, 2.0]
        return NumberMixture.gaussian(torch.from_numpy(means), torch.ones(400, 3).double())

    found = [decide(draw(), 1.0, 4.0) for _ in range(300)]
    mixture = draw()
    action = decide(mixture, 1.0, 4.0)["action"]
    values, options = {"action": action}, decided(over=1.0, under=4.0)
    stated = decisions.errors(mixture, mixture, values, options, lambda parts: parts.std(0) / 20)
    for name in ("expected_cost", "value_of_model_information"):
        actual = torch.stack([each[name] for each in found]).std(0)
        torch.testing.assert_close(stated[name], actual, rtol=0.25, atol=0)


def decided(**costs: object) -> ResolvedOptions:
    plain = PredictOptions(costs=Costs(**costs))  # type: ignore[arg-type]
    return ResolvedOptions.of(plain, seed=0, sampler="monte_carlo", top=1, horizon=1)


def test_a_person_is_asked_where_that_costs_less() -> None:
    mixture = known_gaussians()
    options = decided(over=1.0, under=4.0, abstain=1.7)
    found = summarise(mixture, options, None)
    answer = questions.finished(found, options)
    assert 0 < answer["ask"].sum() < 4
    np.testing.assert_array_equal(answer["ask"], answer["expected_cost"] > 1.7)
