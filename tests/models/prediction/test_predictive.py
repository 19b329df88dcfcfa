"""Summaries of the predictive mixture against scipy, integrals and simulation."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm
from scoringrules import crps_mixnorm

from models.evaluation.calibration_error import (
    equal_counts,
    equal_widths,
    expected_calibration_error,
)
from models.evaluation.metrics import (
    classification_metrics,
    classification_scores,
    regression_metrics,
    regression_scores,
)
from models.prediction.influence import error_of_mean
from models.prediction.predictive import CategoricalMixture, GaussianMixture


@pytest.fixture
def mixture() -> GaussianMixture:
    generator = torch.Generator().manual_seed(0)
    means = 3 * torch.randn(7, 4, generator=generator, dtype=torch.float64)
    variances = torch.rand(7, 4, generator=generator, dtype=torch.float64) ** 3 + 1e-4
    return GaussianMixture(means, variances)


@pytest.fixture
def classes() -> CategoricalMixture:
    logits = 2 * torch.randn(9, 5, 3, generator=torch.Generator().manual_seed(1)).double()
    return CategoricalMixture(logits)


@pytest.mark.parametrize("level", [0.001, 0.05, 0.5, 0.95, 0.999])
def test_quantiles_are_roots_of_the_mixtures_cdf(mixture: GaussianMixture, level: float) -> None:
    got = mixture.quantile(level)
    for row in range(4):
        means, scales = mixture.means[:, row].numpy(), mixture.variances[:, row].sqrt().numpy()

        def excess(value: float, means: np.ndarray = means, scales: np.ndarray = scales) -> float:
            return float(norm.cdf(value, means, scales).mean()) - level

        assert got[row].item() == pytest.approx(brentq(excess, -40, 40, xtol=1e-12), abs=1e-6)


def test_one_sample_gives_the_normal_quantile() -> None:
    one = GaussianMixture(torch.tensor([[2.0]]).double(), torch.tensor([[9.0]]).double())
    assert one.quantile(0.95).item() == pytest.approx(norm.ppf(0.95, 2, 3))
    assert one.epistemic().item() == 0.0


def test_the_variance_decomposes(mixture: GaussianMixture) -> None:
    """Law of total variance: simulated from the mixture, within 4 standard errors."""
    generator, count = torch.Generator().manual_seed(2), 200_000
    index = torch.randint(7, (count,), generator=generator)
    noise = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    draws = mixture.means[index] + mixture.variances[index].sqrt() * noise
    total = mixture.aleatoric() + mixture.epistemic()
    squares = (draws - draws.mean(0)).square()
    error = squares.std(0) / math.sqrt(count)
    assert ((squares.mean(0) - total).abs() < 4 * error).all()


def test_epistemic_variance_survives_a_large_mean() -> None:
    """E[x²] − E[x]² in float32 would be pure rounding here."""
    means = torch.tensor([[1e6 - 0.01], [1e6 + 0.01]], dtype=torch.float64)
    mixture = GaussianMixture(means, torch.ones(2, 1, dtype=torch.float64))
    assert mixture.epistemic().item() == pytest.approx(1e-4, rel=1e-4)


def test_log_prob_and_crps_match_numerical_integration(mixture: GaussianMixture) -> None:
    target = torch.tensor([0.3, -4.0, 2.0, 9.0], dtype=torch.float64)
    log_prob, crps = mixture.log_prob(target), mixture.crps(target)
    for row in range(4):
        means, scales = mixture.means[:, row].numpy(), mixture.variances[:, row].sqrt().numpy()
        y = target[row].item()
        density = norm.pdf(y, means, scales).mean()
        if density > 0:
            assert log_prob[row].item() == pytest.approx(math.log(density), rel=1e-6)

        def integrand(
            x: float, means: np.ndarray = means, scales: np.ndarray = scales, y: float = y
        ) -> float:
            return float((norm.cdf(x, means, scales).mean() - (x >= y)) ** 2)

        points = sorted([y, *means])
        value, _ = quad(integrand, -40, 40, points=points, limit=2000)
        assert crps[row].item() == pytest.approx(value, abs=1e-5)


def test_a_target_far_outside_has_a_finite_log_prob(mixture: GaussianMixture) -> None:
    assert torch.isfinite(mixture.log_prob(torch.full((4,), 1e4, dtype=torch.float64))).all()


def test_monte_carlo_error_is_honest() -> None:
    """The deviation of the mean over 400 repetitions equals the stated error within 15 %."""
    generator = torch.Generator().manual_seed(3)
    draws = torch.randn(400, 50, 1, generator=generator, dtype=torch.float64)
    noise = torch.ones(50, 1, dtype=torch.float64)
    mixtures = [GaussianMixture(means, noise) for means in draws]
    stated = torch.stack([error_of_mean(m, m, even=False) for m in mixtures]).mean().item()
    actual = torch.stack([m.mean() for m in mixtures]).std().item()
    assert stated == pytest.approx(actual, rel=0.15)


def test_class_variance_and_entropy_decompose(classes: CategoricalMixture) -> None:
    mean = classes.mean()
    torch.testing.assert_close(classes.aleatoric() + classes.epistemic(), mean * (1 - mean))
    entropy = -(mean * mean.log()).sum(-1)
    torch.testing.assert_close(classes.total_entropy(), entropy)
    torch.testing.assert_close(classes.mutual_information(), entropy - classes.expected_entropy())
    assert (classes.mutual_information() > 0).all()


def test_certain_probabilities_have_no_entropy_and_no_nan() -> None:
    certain = CategoricalMixture(torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]]]).double().log())
    assert certain.total_entropy().item() == 0.0
    assert certain.mutual_information().item() == 0.0
    assert torch.isfinite(certain.log_prob(torch.tensor([1]))).all()


def test_coverage_counts_targets_between_the_quantiles(mixture: GaussianMixture) -> None:
    target = torch.tensor([0.3, -4.0, 2.0, 9.0], dtype=torch.float64)
    inside = (mixture.quantile(0.05) < target) & (target < mixture.quantile(0.95))
    metrics = regression_metrics(regression_scores(mixture, target))
    coverage = metrics["coverage"]
    assert isinstance(coverage, dict)
    assert coverage["0.9"] == inside.double().mean().item()
    error = (mixture.mean() - target).square().mean().sqrt().item()
    assert metrics["rmse"] == pytest.approx(error)


def test_class_metrics_by_hand() -> None:
    probs = torch.tensor([[[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]]]).double()
    metrics = classification_metrics(
        classification_scores(CategoricalMixture(probs.log()), torch.tensor([0, 0, 0]))
    )
    assert metrics["accuracy"] == pytest.approx(2 / 3)
    assert metrics["log_likelihood"] == pytest.approx(np.log([0.7, 0.4, 0.9]).mean())
    assert metrics["brier"] == pytest.approx((2 * 0.09 + 2 * 0.36 + 2 * 0.01) / 3)


def test_bins_of_equal_mass_by_hand() -> None:
    """30 rows: 15 pairs of neighbours in confidence, whatever order the rows are in."""
    confidence = torch.linspace(0.5, 1.0, 30).double()
    correct = (torch.arange(30) % 3 > 0).double()
    gaps = (correct - confidence).view(15, 2).sum(1).abs().sum() / 30
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    confidence, correct = confidence[order], correct[order]
    found = expected_calibration_error(confidence, correct, equal_counts(confidence))
    assert found.raw == pytest.approx(float(gaps))


def test_crps_is_that_of_a_library_that_scores_mixtures(mixture: GaussianMixture) -> None:
    target = torch.tensor([0.3, -4.0, 2.0, 9.0], dtype=torch.float64)
    means, scales = mixture.means.T.numpy(), mixture.variances.sqrt().T.numpy()
    expected = crps_mixnorm(target.numpy(), means, scales)
    np.testing.assert_allclose(mixture.crps(target).numpy(), expected, rtol=1e-6)


def test_calibration_error_by_hand() -> None:
    """Two bins of two rows: |0.5 − 0.91| and |1 − 0.55|, each weighing one half."""
    confidence = torch.tensor([0.9, 0.92, 0.54, 0.56]).double()
    correct = torch.tensor([1.0, 0.0, 1.0, 1.0]).double()
    expected = 0.5 * abs(0.5 - 0.91) + 0.5 * abs(1 - 0.55)
    found = expected_calibration_error(confidence, correct, equal_widths(confidence))
    assert found.raw == pytest.approx(expected)


@pytest.mark.parametrize("classes", [2, 16, 17])
def test_probabilities_are_the_softmax_for_any_number_of_classes(classes: int) -> None:
    random = torch.Generator().manual_seed(0)
    logits = 30 * torch.randn(5, 4, classes, generator=random, dtype=torch.float64)
    mixture = CategoricalMixture(logits)
    expected = logits.exp() / logits.exp().sum(-1, keepdim=True)
    torch.testing.assert_close(mixture.probs, expected)
    entropy = -(expected * expected.log()).sum(-1).mean(0)
    torch.testing.assert_close(mixture.expected_entropy(), entropy)
