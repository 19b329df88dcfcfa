"""Standard errors of forecasts' scores, compared with how the scores vary in simulations."""

import numpy as np
import pytest
import torch

from models.forecasting.backtest import verdict
from models.forecasting.worth import Overlaps, walks
from models.likelihoods.number_mixture import NumberMixture

HORIZON, REPEATS = 6, 200


def crps(errors: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Of Gaussian forecasts, in the order of the errors."""
    means, variances = (
        torch.from_numpy(np.broadcast_to(part, errors.shape).flatten()[None]).double()
        for part in (np.zeros(1), deviation**2)
    )
    targets = torch.from_numpy(errors.flatten())
    return NumberMixture.gaussian(means, variances).crps(targets).numpy()


def errors_of(random: np.random.Generator, firsts: np.ndarray, phi: float = 1.0) -> np.ndarray:
    """Errors of the best forecasts of x_t = φ x_t−1 + noise: [origins, horizon]."""
    noise = random.normal(size=firsts.max() + HORIZON)
    found, error = [], np.zeros(len(firsts))
    for h in range(HORIZON):
        error = phi * error + noise[firsts + h]
        found.append(error)
    return np.stack(found, 1)


def test_correlations_are_those_of_a_random_walk() -> None:
    """Of 20,000 walks: a correlation is known to 0.007."""
    random, firsts = np.random.default_rng(0), np.array([0, 2])
    errors = np.stack([errors_of(random, firsts) for _ in range(20_000)])
    found = np.corrcoef(errors[:, 0].T, errors[:, 1].T)[:HORIZON, HORIZON:]
    np.testing.assert_allclose(walks(2, HORIZON), found, atol=0.02)


@pytest.mark.parametrize(
    ("firsts", "phi"),
    [(np.arange(30), 0.7), (np.arange(30), 1.0), (np.arange(4) * HORIZON, 0.0)],
)
def test_errors_tell_how_much_mean_scores_vary(firsts: np.ndarray, phi: float) -> None:
    """Errors that do not last, that last and that stay: right, or up to half as large again."""
    random = np.random.default_rng(0)
    overlaps = Overlaps(np.zeros(len(firsts), int), firsts, HORIZON)
    deviation = np.sqrt(np.cumsum(phi ** (2.0 * np.arange(HORIZON))))
    means, errors = [], []
    for _ in range(REPEATS):
        ours = errors_of(random, firsts, phi)
        scores = crps(ours, deviation)
        difference = crps(ours + 0.5 * deviation, deviation) - scores
        means.append((scores.mean(), difference.mean()))
        of_difference, _ = overlaps.error_of_differences(difference)
        errors.append((overlaps.error_of_scores(scores), of_difference))
    ratios = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(means, axis=0)
    assert (ratios > 0.85).all()
    assert (ratios < 1.5).all()


def test_a_verdict_needs_two_standard_errors_or_more_if_few_errors_tell_them() -> None:
    found = [verdict(d, 0.5, 1e6) for d in (1.1, 0.9, -0.9, -1.1)]
    assert found == ["better", "no difference", "no difference", "worse"]
    assert verdict(1.1, 0.5, 5) == "no difference"  # Student's t needs 2.6 of them
    assert verdict(1.4, 0.5, 5) == "better"


def test_many_series_of_different_scales_have_the_error_of_their_means() -> None:
    """Lognormal scales, which all scores of a series share."""
    random = np.random.default_rng(1)
    firsts = np.array([0, HORIZON])
    overlaps = Overlaps(np.repeat(np.arange(40), 2), np.tile(firsts, 40), HORIZON)
    means, errors = [], []
    for _ in range(REPEATS):
        scales = np.exp(random.normal(size=40) / 2)
        parts = [s * np.abs(errors_of(random, firsts)) for s in scales]
        scores = np.stack(parts).flatten()
        means.append(scores.mean())
        errors.append(overlaps.error_of_scores(scores))
    stated = np.sqrt(np.mean(np.square(np.array(errors, float))))
    assert stated / np.std(means) == pytest.approx(1, abs=0.15)
