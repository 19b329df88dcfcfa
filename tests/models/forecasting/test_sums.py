"""Sums over the steps of forecasts: dependence of steps, coverage, and stated errors."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.path_calibration import (
    PathCalibration,
    Residuals,
    SumCalibration,
    Worth,
)
from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.forecasting.totals.sums import Spread, couple, fit_theta
from models.prediction.options import PredictOptions, Totals
from tests.models.forecasting.series_cases import LOGARITHM
from tests.models.functions import randn

STEPS = 6


def correlation_of(draws: Tensor) -> np.ndarray:
    return np.corrcoef(draws[:, 0].numpy().T)


@pytest.mark.parametrize("theta", [-1.0, -0.5, 0.3, 1.0])
def test_theta_moves_the_correlation_and_steps_keep_their_draws(theta: float) -> None:
    """Of 20,000 random walks: a correlation is known to 0.007."""
    walks = randn(20_000, 1, STEPS).cumsum(-1)
    own, moved = correlation_of(walks), couple(walks, theta, 7)
    end = np.ones((STEPS, STEPS)) if theta > 0 else np.eye(STEPS)
    expected = (1 - abs(theta)) * own + abs(theta) * end
    np.testing.assert_allclose(correlation_of(moved), expected, atol=0.03)
    torch.testing.assert_close(moved.sort(0).values, walks.sort(0).values, rtol=0, atol=0)


def errors_of(kind: str, origins: int, seed: int) -> Tensor:
    """Errors of unit deviation at each step: independent, of a random walk, or one for all."""
    if kind == "independent":
        return randn(origins, STEPS, seed=seed)
    if kind == "same":
        return randn(origins, 1, seed=seed).expand(-1, STEPS)
    return randn(origins, STEPS, seed=seed).cumsum(1) / torch.arange(1, STEPS + 1).sqrt()


def forecast_of(kind: str, origins: int, seed: int = 100, *, paths: int = 5) -> Forecast:
    """Forecasts of 0 whose steps have the right deviation, and depend on each other by `kind`."""
    values = errors_of(kind, 40 * paths * origins, seed).reshape(40, paths, origins, STEPS)
    means = torch.zeros_like(values)
    return Forecast(Paths(values, means, torch.ones_like(values), means), PLAIN)


@pytest.mark.parametrize(
    ("predicted", "truth"),
    [("independent", "walk"), ("same", "independent"), ("walk", "walk"), ("walk", "same")],
)
def test_calibrated_sums_cover_what_they_promise(predicted: str, truth: str) -> None:
    """90 % intervals of sums, by 600 forecasts, of 20,000 fresh ones; not calibrated 63 to 100 %.

    600 errors tell a deviation to 3 %, and so a coverage to 1.2 points; that of the last of the
    sums is judged, to which the errors of all steps' scales add.
    """
    targets = errors_of(truth, 600, 1).flatten()
    calibration = forecast_of(predicted, 600).fit_calibration(targets, Worth(600.0), Worth(600.0))
    fresh = Forecast(forecast_of(predicted, 1, 7, paths=100).drawn, PLAIN, calibration)
    found = fresh.summarise(PredictOptions(totals=Totals())).parts["totals"]
    sums = errors_of(truth, 20_000, 3).sum(1).numpy()
    for before in ("", "conformal_"):
        lower, upper = (found[f"{before}{end}"][-1, 0] for end in ("lower", "upper"))
        assert np.mean((lower <= sums) & (sums <= upper)) == pytest.approx(0.9, abs=0.03), before
    assert abs(calibration.sums.theta) < 0.3 or predicted != truth


def test_theta_is_where_the_likelihood_of_known_variances_is_highest() -> None:
    """Errors of variance 2 between 1 (own) and 5 (together): 1 − θ + 5 θ = 2 at θ = ¼."""
    shape = (4_000, 1)
    zero, one = torch.zeros(shape).double(), torch.ones(shape).double()
    spreads = Spread(zero, one), Spread(zero, 0.5 * one), Spread(zero, 5**0.5 * one)
    found = fit_theta(spreads, 2**0.5 * one, 4_000.0)
    assert found == pytest.approx(0.25, abs=0.011)


def walks(samples: int, seed: int, *, is_log: bool) -> Forecast:
    """Paths of a random walk whose drift is uncertain."""
    noise = randn(samples, 4, 1, STEPS, seed=seed)
    drift = 0.3 * randn(samples, 1, 1, 1, seed=seed + 1_000_000)
    means = drift + torch.cat([torch.zeros_like(noise[..., :1]), 0.2 * noise[..., :-1]], -1)
    values = means + 0.2 * noise
    return Forecast(
        Paths(values, means, torch.full_like(values, 0.04), means), LOGARITHM if is_log else PLAIN
    )


@pytest.mark.parametrize("is_log", [False, True])
def test_totals_are_sums_of_whole_paths(is_log: bool) -> None:
    one = walks(50, 0, is_log=is_log)
    asked = PredictOptions(totals=Totals((2.0, 6.0)), quantiles=(0.25,), intervals=(0.8,))
    found = one.summarise(asked)
    sums = one.draws.numpy().cumsum(1)
    totals = found.parts["totals"]
    np.testing.assert_allclose(totals["mean"], found["mean"].cumsum())
    levels = [0.5, 0.1, 0.9, 0.25]
    names = ["median", "lower", "upper", "quantile"]
    expected = np.quantile(sums, levels, axis=0, method="weibull")
    for name, values in zip(names, expected, strict=True):
        np.testing.assert_allclose(totals[name].ravel(), values)
    above = [(sums > threshold).mean(0) for threshold in (2.0, 6.0)]
    np.testing.assert_allclose(totals["exceeds"], np.stack(above, 1))


def test_the_stated_errors_are_those_of_other_draws() -> None:
    """The deviation over 100 forecasts is known to 7 %, the mean stated error better."""
    sums = SumCalibration(0.5, Residuals((1.0,), 9.0))
    calibration = PathCalibration(1.0, 0.0, STEPS, (1.0,), 9, 9.0, sums=sums)
    asked = PredictOptions(
        totals=Totals((2.0,)), quantiles=(0.9,), return_mc_errors=True, interval_kinds=("credible",)
    )
    runs = [
        replace(walks(50, seed, is_log=False), calibration=calibration, seed=seed).summarise(asked)
        for seed in range(100)
    ]
    parts = [run.parts["totals"] for run in runs]
    for name in ("mean", "median", "quantile", "exceeds"):
        actual = np.stack([one[name].ravel() for one in parts]).std(0)[2:]
        stated = np.sqrt(np.mean([one.errors[name].ravel()[2:] ** 2 for one in parts], axis=0))
        np.testing.assert_allclose(stated, actual, rtol=0.25, err_msg=name)
