"""Predictive mixtures: variances, quantiles, scores, moments."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm
from scoringrules import crps_mixnorm
from torch import Tensor

from models.config import BBBConfig, MLEConfig, MLPConfig, TrainingConfig
from models.evaluation.crps import mixture_crps
from models.evaluation.metrics import (
    COVERAGE_LEVELS,
)
from models.inference.bbb import BBBState
from models.layers.dense import Dense
from models.likelihoods import expected_noise
from models.likelihoods.mixture import CategoricalMixture
from models.likelihoods.number_mixture import Integrated, NumberMixture
from models.networks import ACTIVATIONS, MLP
from models.posteriors.mean_field import MeanFieldNormal
from models.prediction.fitted import Fitted
from models.prediction.local import activation_moments
from models.prediction.monte_carlo_error import all_errors, error_of_mean, standard_error
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from tests.models.conftest import functions
from tests.models.training.fitting import trained


@pytest.fixture
def mixture() -> NumberMixture:
    generator = torch.Generator().manual_seed(0)
    means = 3 * torch.randn(7, 4, generator=generator, dtype=torch.float64)
    variances = torch.rand(7, 4, generator=generator, dtype=torch.float64) ** 3 + 1e-4
    return NumberMixture.gaussian(means, variances)


@pytest.fixture
def classes() -> CategoricalMixture:
    logits = 2 * torch.randn(9, 5, 3, generator=torch.Generator().manual_seed(1)).double()
    return CategoricalMixture(logits)


@pytest.mark.parametrize("level", [0.001, 0.05, 0.5, 0.95, 0.999])
def test_quantiles_are_roots_of_the_mixtures_cdf(mixture: NumberMixture, level: float) -> None:
    got = mixture.quantile(level)
    for row in range(4):
        means, scales = mixture.locs[:, 0, row].numpy(), mixture.scales[:, 0, row].numpy()

        def excess(value: float, means: np.ndarray = means, scales: np.ndarray = scales) -> float:
            return float(norm.cdf(value, means, scales).mean()) - level

        assert got[row].item() == pytest.approx(brentq(excess, -40, 40, xtol=1e-12), abs=1e-6)


def test_the_variance_decomposes(mixture: NumberMixture) -> None:
    """Law of total variance: simulated from the mixture, within 4 standard errors."""
    generator, count = torch.Generator().manual_seed(2), 200_000
    index = torch.randint(7, (count,), generator=generator)
    noise = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    draws = mixture.locs[index, 0] + mixture.scales[index, 0] * noise
    total = mixture.aleatoric() + mixture.epistemic()
    squares = (draws - draws.mean(0)).square()
    error = squares.std(0) / math.sqrt(count)
    assert ((squares.mean(0) - total).abs() < 4 * error).all()


def test_epistemic_variance_survives_a_large_mean() -> None:
    """E[x²] − E[x]² in float32 would be pure rounding here."""
    means = torch.tensor([[1e6 - 0.01], [1e6 + 0.01]], dtype=torch.float64)
    mixture = NumberMixture.gaussian(means, torch.ones(2, 1, dtype=torch.float64))
    assert mixture.epistemic().item() == pytest.approx(1e-4, rel=1e-4)


def test_class_variance_and_entropy_decompose(classes: CategoricalMixture) -> None:
    mean = classes.mean()
    torch.testing.assert_close(classes.aleatoric() + classes.epistemic(), mean * (1 - mean))
    entropy = -(mean * mean.log()).sum(-1)
    torch.testing.assert_close(classes.total_entropy(), entropy)
    torch.testing.assert_close(classes.mutual_information(), entropy - classes.expected_entropy())
    assert (classes.mutual_information() > 0).all()


@pytest.mark.parametrize(("wider", "tolerance"), [(1.0, 3e-5), (0.0, 3e-3)])
def test_crps_is_that_of_a_library(mixture: NumberMixture, wider: float, tolerance: float) -> None:
    """Less exactly where components are narrower than the distance of the integral's nodes."""
    mixture = replace(mixture, scales=mixture.scales + wider)
    target = torch.tensor([0.3, -4.0, 2.0, 9.0], dtype=torch.float64)
    means, scales = mixture.locs[:, 0].T.numpy(), mixture.scales[:, 0].T.numpy()
    expected = crps_mixnorm(target.numpy(), means, scales)
    np.testing.assert_allclose(mixture_crps(mixture, target).numpy(), expected, rtol=tolerance)


REPETITIONS = 400  # a standard deviation is known to 1/√800 = 3.5 %


def _randn(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _check(errors: list[dict[str, Tensor]], answers: dict[str, list[Tensor]]) -> None:
    """Actual ÷ stated within 15 %: four errors of the standard deviation, and of order 1/S."""
    for name, values in answers.items():
        actual = torch.stack(values).std(0)
        stated = torch.stack([one[name].square() for one in errors]).mean(0).sqrt()
        torch.testing.assert_close(actual, stated, rtol=0.15, atol=1e-12, msg=name)


@pytest.mark.parametrize("scale", [1.0, 0.6, 1.8])
def test_every_output_of_numbers_states_its_error(scale: float) -> None:
    """Independent samples of means and noise, calibrated by a factor on variances."""
    levels = {"lower": 0.05, "median": 0.5, "upper": 0.95}
    errors: list[dict[str, Tensor]] = []
    answers: dict[str, list[Tensor]] = {}
    for seed in range(REPETITIONS):
        random = _randn(3, 200, 1, seed=seed)
        noise = torch.exp(0.5 * random[1])
        raw = NumberMixture.gaussian(random[0], noise, Integrated(0.1 * random[2].square(), noise))
        mixture = raw.scaled(scale)
        bounds = dict(zip(levels, mixture.quantiles(list(levels.values())), strict=True))
        for name, width in (("conformal_upper", 2.0), ("adaptive_upper", 3.0)):
            bounds[name] = (mixture.mean() + width * mixture.total().sqrt()).unsqueeze(-1)
        of_mean = {"mean": error_of_mean(mixture, raw, standard_error)}
        errors.append(of_mean | all_errors(mixture, raw, bounds, {}, standard_error))
        found = bounds | {
            "mean": mixture.mean(),
            "aleatoric_variance": mixture.aleatoric(),
            "epistemic_variance": mixture.epistemic(),
            "total_variance": mixture.total(),
        }
        for name, value in found.items():
            answers.setdefault(name, []).append(value)
    _check(errors, answers)


@pytest.mark.parametrize(
    ("mean", "variance"), [(-1.0, 0.5), (5.5, 2.0), (-17.0, 4.0), (2.0, 60.0), (0.0, 0.0)]
)
def test_the_expected_noise_is_the_integral_within_bounds(mean: float, variance: float) -> None:
    def integrand(z: float) -> float:
        log_variance = min(max(mean + math.sqrt(variance) * z, -16.0), 6.0)
        return math.exp(log_variance) * float(norm.pdf(z))

    kinks = [] if not variance else [(b - mean) / math.sqrt(variance) for b in (-16.0, 6.0)]
    inside = [z for z in kinks if abs(z) < 12]
    expected, _ = quad(integrand, -12, 12, points=inside or None, limit=400)
    of = torch.tensor([[mean]], dtype=torch.float64), torch.tensor([[variance]]).double()
    assert expected_noise(*of).item() == pytest.approx(expected, rel=1e-6)


ROWS = 200


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.uniform(-2, 2, ROWS)
    kind = np.where(x + random.normal(0, 0.5, ROWS) > 0, "right", "left").astype(object)
    return {"x": x, "y": 3 * x + random.normal(0, 0.5, ROWS), "kind": kind}


def fit(columns: dict[str, np.ndarray], target: str, method: MLEConfig | BBBConfig) -> TabularModel:
    chosen = {name: columns[name] for name in ("x", target)}
    network, training = MLPConfig(hidden=(8,)), TrainingConfig(epochs=5, background=0)
    return trained(
        chosen, target=target, network=network, method=method, training=training, pruning=()
    )


def test_a_gaussian_prediction_scores_as_in_scipy(columns: dict[str, np.ndarray]) -> None:
    """A point estimate predicts one Gaussian per row: its density, PIT and coverage are SciPy's."""
    model = fit(columns, "y", MLEConfig(kind="mle"))
    answer = model.predict(columns, PredictOptions())
    predicted = stats.norm(answer.mean, np.sqrt(answer.variance["total"]))
    scores = model.row_scores(model.encode(columns), columns["y"], PredictOptions())
    density = predicted.logpdf(columns["y"])
    assert scores["log_likelihood"].numpy() == pytest.approx(density, rel=1e-4, abs=1e-5)
    off_centre = np.abs(2 * predicted.cdf(columns["y"]) - 1)
    for level in COVERAGE_LEVELS:
        clear = np.abs(off_centre - level) > 1e-5  # of a tie rounding decides
        inside = scores[f"coverage_{level:g}"].numpy()
        assert (inside[clear] == (off_centre < level)[clear]).all()
    error = (answer.mean - columns["y"]) ** 2
    assert scores["squared_error"].numpy() == pytest.approx(error, rel=1e-4, abs=1e-6)


CASES = [(0.0, 1.0), (2.0, 0.3), (-2.0, 0.3), (50.0, 1e-4), (-3.0, 4.0), (0.1, 1e-12)]


@pytest.mark.parametrize("activation", ["relu", "tanh", "silu", "gelu"])
@pytest.mark.parametrize(("mean", "variance"), CASES)
def test_activation_moments_are_integrals(activation: str, mean: float, variance: float) -> None:
    """Gauss–Hermite with 32 nodes is a percent off where tanh is steep beside a wide Gaussian."""
    scale = variance**0.5

    def expect(power: int, centre: float = 0.0) -> float:
        def integrand(z: float) -> float:
            value = float(ACTIVATIONS[activation](torch.tensor(mean + scale * z).double()))
            return (value - centre) ** power * norm.pdf(z)

        return quad(integrand, -9, 9, points=[np.clip(-mean / scale, -9, 9)], limit=200)[0]

    first = expect(1)
    second = expect(2, first)
    arguments = torch.tensor([[mean]]).double(), torch.tensor([[variance]]).double()
    found = activation_moments(activation, *arguments)
    assert found[0].item() == pytest.approx(first, rel=1e-3, abs=1e-9)
    assert found[1].item() == pytest.approx(second, rel=2e-2, abs=1e-10)


def test_relu_keeps_its_variance_far_from_zero_in_float32() -> None:
    """There the unit is linear: E[x²] − E[x]² would have lost all digits of 1e-4 beside 10⁶."""
    mean, variance = activation_moments("relu", torch.tensor([[1e3]]), torch.tensor([[1e-4]]))
    assert mean.item() == pytest.approx(1e3)
    assert variance.item() == pytest.approx(1e-4, rel=1e-5)


@pytest.mark.parametrize("hidden", [(), (30,)])
def test_propagation_is_exact_up_to_one_hidden_layer(hidden: tuple[int, ...]) -> None:
    """Within 4.5 standard errors of 20,000 weight draws, for mean and variance of 10 outputs."""
    count = 20_000
    network, posterior, x = _problem(hidden)
    (one,) = Fitted.of(network, BBBState(posterior, {})).groups
    mean, variance = (part.squeeze(0) for part in one.moments(one.first(x)))
    draws = functions(network, posterior, x, 3, count).double()
    error = (draws.var(0) / count).sqrt()
    assert ((draws.mean(0) - mean).abs() < 4.5 * error).all()
    fourth = (draws - draws.mean(0)).pow(4).mean(0)
    error_of_variance = ((fourth - draws.var(0).square()) / count).sqrt()
    assert ((draws.var(0) - variance).abs() < 4.5 * error_of_variance).all()


def _problem(hidden: tuple[int, ...]) -> tuple[MLP, MeanFieldNormal, torch.Tensor]:
    network = MLP.build(MLPConfig(hidden=hidden), 4, 2)
    assert all(isinstance(layer, Dense) for layer in network.layers)
    loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    return network, MeanFieldNormal(loc, torch.full_like(loc, -2.0)), x
