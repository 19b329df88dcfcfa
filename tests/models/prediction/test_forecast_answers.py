"""Answers about forecasts and their paths, against closed forms."""

import numpy as np
import pytest
import torch
from scipy import stats

from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.prediction.options import Density, PredictOptions
from tests.models.forecasting.series_cases import LOGARITHM

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
