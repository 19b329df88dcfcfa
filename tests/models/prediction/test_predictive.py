"""Summaries of the predictive mixture against scipy, integrals and simulation."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm
from scoringrules import crps_mixnorm
from torch import Tensor

from models.likelihoods import expected_noise
from models.likelihoods.mixture import CategoricalMixture
from models.likelihoods.number_mixture import Integrated, NumberMixture
from models.prediction.monte_carlo_error import all_errors, error_of_mean, standard_error


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
def test_crps_is_that_of_a_library_that_scores_mixtures(
    mixture: NumberMixture, wider: float, tolerance: float
) -> None:
    """Less exactly where components are narrower than the distance of the integral's nodes."""
    mixture = replace(mixture, scales=mixture.scales + wider)
    target = torch.tensor([0.3, -4.0, 2.0, 9.0], dtype=torch.float64)
    means, scales = mixture.locs[:, 0].T.numpy(), mixture.scales[:, 0].T.numpy()
    expected = crps_mixnorm(target.numpy(), means, scales)
    np.testing.assert_allclose(mixture.crps(target).numpy(), expected, rtol=tolerance)


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
def test_the_expected_noise_is_the_integral_within_the_likelihoods_bounds(
    mean: float, variance: float
) -> None:
    def integrand(z: float) -> float:
        log_variance = min(max(mean + math.sqrt(variance) * z, -16.0), 6.0)
        return math.exp(log_variance) * float(norm.pdf(z))

    kinks = [] if not variance else [(b - mean) / math.sqrt(variance) for b in (-16.0, 6.0)]
    inside = [z for z in kinks if abs(z) < 12]
    expected, _ = quad(integrand, -12, 12, points=inside or None, limit=400)
    of = torch.tensor([[mean]], dtype=torch.float64), torch.tensor([[variance]]).double()
    assert expected_noise(*of).item() == pytest.approx(expected, rel=1e-6)
