"""A path beyond a threshold at some step: against closed forms and simulation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from models.forecasting.forecast import Forecast
from models.forecasting.observation import LOGARITHM, PLAIN
from models.forecasting.rollout import Paths
from models.prediction.options import PredictOptions
from models.prediction.prediction import Arrays

DRAWS, PATHS, STEPS = 200, 25, 5


def _walk(
    seed: int = 0, draws: int = DRAWS, *, is_log: bool = False, drift: float = 0.0
) -> Forecast:
    """Two random walks with steps of deviation 1, the second with a drift; no weight is unsure."""
    random = torch.Generator().manual_seed(seed)
    noise = torch.randn(draws, PATHS, 2, STEPS, generator=random, dtype=torch.float64)
    noise[:, :, 1] += drift
    values = noise.cumsum(-1)
    means = values - noise
    means[:, :, 1] += drift
    return Forecast(
        Paths(values, means, torch.ones_like(means), means), LOGARITHM if is_log else PLAIN
    )


def _asked(one: Forecast, *thresholds: float) -> Arrays:
    asked = PredictOptions(exceeds=thresholds, return_mc_errors=True, intervals=())
    return one.summarise(asked)


def _truth(threshold: float, drift: float) -> np.ndarray:
    """P(max_{k≤h} > t) of a walk, by integration of the density of paths that stay below."""
    grid = np.linspace(threshold - 14, threshold, 561)
    width = grid[1] - grid[0]
    stay = stats.norm(drift).pdf(grid)
    kernel = stats.norm(drift).pdf(grid[:, None] - grid[None, :])
    found = [stats.norm(drift).sf(threshold)]
    weights = np.full(len(grid), width)
    weights[[0, -1]] /= 2
    for _ in range(STEPS - 1):
        stay = kernel @ (weights * stay)
        found.append(1 - (weights * stay).sum())
    return np.array(found)


@pytest.mark.parametrize("threshold", [0.0, 1.5, 4.0])
def test_the_probability_of_ever_exceeding_is_that_of_a_walks_maximum(threshold: float) -> None:
    """5,000 paths: a standard error of 0.7 points; the first step is exact."""
    found = _asked(_walk(drift=0.3), threshold)
    above = found["exceeds any_above"][:, 0].reshape(2, STEPS)
    for i, drift in enumerate((0.0, 0.3)):
        truth = _truth(threshold, drift)
        np.testing.assert_allclose(above[i], truth, atol=0.025)
        assert above[i, 0] == pytest.approx(truth[0], abs=1e-9)
    below = _asked(_walk(drift=-0.3), -threshold)["exceeds any_below"][:, 0].reshape(2, STEPS)
    np.testing.assert_allclose(below[1], _truth(threshold, 0.3), atol=0.025)


def test_it_grows_with_the_steps_and_is_at_least_that_of_the_step() -> None:
    found = _asked(_walk(draws=10), 0.5, 1.5)
    ever = found["exceeds any_above"].reshape(2, STEPS, 2)
    assert (np.diff(ever, axis=1) >= 0).all()
    assert (found["exceeds any_above"] >= found["exceeds probabilities"] - 1e-12).all()
    below = 1 - found["exceeds probabilities"]
    assert (found["exceeds any_below"] >= below - 1e-12).all()


def test_logarithms_are_compared_as_values() -> None:
    plain, log = _asked(_walk(), 1.0), _asked(_walk(is_log=True), float(np.e))
    for name in ("exceeds any_above", "exceeds any_below"):
        np.testing.assert_allclose(log[name], plain[name], atol=1e-9)


def test_the_stated_errors_are_those_of_other_draws() -> None:
    runs = [_asked(_walk(seed, draws=40), 1.5) for seed in range(150)]
    for name in ("any_above", "any_below"):
        actual = np.stack([run[f"exceeds {name}"][:, 0] for run in runs]).std(0)
        stated = np.sqrt(np.mean([run[f"error of {name}_1.5"] ** 2 for run in runs], axis=0))
        checked = actual > 1e-4  # the first step is exact
        np.testing.assert_allclose(stated[checked], actual[checked], rtol=0.45)


def test_nothing_is_computed_unasked() -> None:
    assert not [n for n in replace(_walk()).summarise(PredictOptions()) if "any_" in n]
