"""Decisions: against brute force, numerical integration and closed forms."""

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from models.likelihoods.mixture import CategoricalMixture
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.answers import decisions, questions
from models.prediction.options import Costs, PredictOptions, ResolvedOptions
from models.prediction.prediction import summarise
from tests.models.prediction.shaped_cases import CASES, ROWS, Case

PER_UNIT = ((1.0, 1.0), (1.0, 4.0), (3.0, 0.5), (1.0, 40.0))


def gaussians() -> NumberMixture:
    random = np.random.default_rng(0)
    means, noise = random.normal(size=(5, 4)), random.uniform(0.2, 2.0, (5, 4))
    return NumberMixture.gaussian(torch.from_numpy(means), torch.from_numpy(noise))


def decide(mixture: NumberMixture, over: float, under: float) -> dict[str, torch.Tensor]:
    return decisions.of_mixture(mixture, asked(over=over, under=under), None)


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
    mixture = gaussians()
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
    mixture, (over, under) = gaussians(), (1.0, 4.0)
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
    values, options = {"action": action}, asked(over=1.0, under=4.0)
    stated = decisions.errors(mixture, mixture, values, options, lambda parts: parts.std(0) / 20)
    for name in ("expected_cost", "value_of_model_information"):
        actual = torch.stack([each[name] for each in found]).std(0)
        torch.testing.assert_close(stated[name], actual, rtol=0.25, atol=0)


def asked(**costs: object) -> ResolvedOptions:
    plain = PredictOptions(costs=Costs(**costs))  # type: ignore[arg-type]
    return ResolvedOptions.of(plain, seed=0, sampler="monte_carlo", top=1, horizon=1)


def test_a_person_is_asked_where_that_costs_less() -> None:
    mixture = gaussians()
    options = asked(over=1.0, under=4.0, abstain=1.7)
    found = summarise(mixture, options, None)
    answer = questions.finished(found, options)
    assert 0 < answer["ask"].sum() < 4
    np.testing.assert_array_equal(answer["ask"], answer["expected_cost"] > 1.7)
