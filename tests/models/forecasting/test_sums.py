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
    worth_of,
)
from models.forecasting.forecast import Forecast
from models.forecasting.observation import LOGARITHM, PLAIN
from models.forecasting.rollout import Paths
from models.forecasting.totals.coupling import Spread, couple, fit_theta, quantiles
from models.prediction.options import PredictOptions, Totals

STEPS = 6


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


def correlation_of(draws: Tensor) -> np.ndarray:
    return np.corrcoef(draws[:, 0].numpy().T)


@pytest.mark.parametrize("theta", [-1.0, -0.5, 0.3, 1.0])
def test_the_correlation_moves_as_far_as_theta_says_and_steps_keep_their_draws(
    theta: float,
) -> None:
    """Of 20,000 random walks: a correlation is known to 0.007."""
    walks = normal(20_000, 1, STEPS).cumsum(-1)
    own, moved = correlation_of(walks), couple(walks, theta, 7)
    end = np.ones((STEPS, STEPS)) if theta > 0 else np.eye(STEPS)
    expected = (1 - abs(theta)) * own + abs(theta) * end
    np.testing.assert_allclose(correlation_of(moved), expected, atol=0.03)
    torch.testing.assert_close(moved.sort(0).values, walks.sort(0).values, rtol=0, atol=0)


def test_a_row_is_coupled_as_it_would_be_alone_and_a_short_forecast_as_a_longer_one() -> None:
    paths = normal(200, 3, STEPS)
    whole = couple(paths, -0.4, 1)
    torch.testing.assert_close(whole[:, 1:2], couple(paths[:, 1:2], -0.4, 1), rtol=0, atol=0)
    torch.testing.assert_close(whole[..., :4], couple(paths[..., :4], -0.4, 1), rtol=0, atol=0)


def test_quantiles_are_those_of_numpy() -> None:
    draws, levels = normal(101, 4), [0.004, 0.05, 0.5, 0.9, 0.999]
    expected = np.quantile(draws.numpy(), levels, axis=0, method="weibull")
    np.testing.assert_allclose(
        quantiles(draws, torch.tensor(levels, dtype=torch.float64)), expected
    )


def test_the_number_of_independent_sums_is_that_of_the_variance_they_estimate() -> None:
    """20,000 random walks: the variance of a mean square's estimate is 2 ÷ n, to some 2 %."""
    shocks = np.random.default_rng(0).normal(size=(20_000, 18))
    h = np.arange(1, STEPS + 1)
    scale = np.sqrt(np.cumsum(h**2))
    errors = [shocks[:, o : o + STEPS].cumsum(1).cumsum(1) / scale for o in range(13)]
    found = worth_of(np.zeros(13, int), np.arange(13) + 5, STEPS, summed=True)
    squares = np.square(np.stack(errors, 1))
    assert squares.mean((1, 2)).var() == pytest.approx(2 / found.together, rel=0.06)
    for step in (0, 3, STEPS - 1):
        alone = squares.mean(1)[:, step].var()
        assert alone == pytest.approx(2 / found.alone[step], rel=0.06)
    two = worth_of(np.repeat([4, 9], 13), np.tile(np.arange(13), 2), STEPS, summed=True)
    assert two.together == pytest.approx(2 * found.together)


def errors_of(kind: str, origins: int, seed: int) -> Tensor:
    """Errors of unit deviation at each step: independent, of a random walk, or one for all."""
    if kind == "independent":
        return normal(origins, STEPS, seed=seed)
    if kind == "same":
        return normal(origins, 1, seed=seed).expand(-1, STEPS)
    return normal(origins, STEPS, seed=seed).cumsum(1) / torch.arange(1, STEPS + 1).sqrt()


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
    assert calibration is not None
    assert calibration.sums is not None
    fresh = Forecast(forecast_of(predicted, 1, 7, paths=100).drawn, PLAIN, calibration)
    found = fresh.summarise(PredictOptions(totals=Totals()))
    sums = errors_of(truth, 20_000, 3).sum(1).numpy()
    for kind in ("credible", "conformal"):
        lower, upper = (found[f"totals {kind} {end}"][-1, 0] for end in ("lower", "upper"))
        assert np.mean((lower <= sums) & (sums <= upper)) == pytest.approx(0.9, abs=0.03), kind
    assert abs(calibration.sums.theta) < 0.3 or predicted != truth


def test_few_sums_move_the_dependence_little_and_have_no_conformal_interval() -> None:
    targets = errors_of("same", 20, 1).flatten()
    plain = forecast_of("independent", 20)
    few, many = (plain.fit_calibration(targets, Worth(20.0), Worth(n)) for n in (0.1, 1_000.0))
    assert few is not None
    assert few.sums is not None
    assert many is not None
    assert many.sums is not None
    assert 0 <= few.sums.theta < 0.2 < many.sums.theta
    found = Forecast(plain.drawn, PLAIN, few).summarise(PredictOptions(totals=Totals()))
    assert np.isinf(found["totals conformal upper"]).all()


@pytest.mark.parametrize("size", [0.5, 2.0])
def test_errors_of_another_size_than_forecast_say_nothing_of_the_dependence(size: float) -> None:
    """The same errors, all of them smaller or larger: θ differs by a few steps of its grid.

    Few independent errors hardly move the scales, so that the calibrated errors keep their size.
    """
    errors = errors_of("walk", 600, 1).flatten()
    found = [
        forecast_of("walk", 600).fit_calibration(targets, Worth(1.0), Worth(600.0))
        for targets in (errors, size * errors)
    ]
    thetas = [one.sums.theta for one in found if one is not None and one.sums is not None]
    assert thetas[1] == pytest.approx(thetas[0], abs=0.1)


def test_theta_is_where_the_likelihood_of_known_variances_is_highest() -> None:
    """Errors of variance 2 between 1 (own) and 5 (together): 1 − θ + 5 θ = 2 at θ = ¼."""
    shape = (4_000, 1)
    zero, one = torch.zeros(shape).double(), torch.ones(shape).double()
    spreads = Spread(zero, one), Spread(zero, 0.5 * one), Spread(zero, 5**0.5 * one)
    found = fit_theta(spreads, 2**0.5 * one, 4_000.0)
    assert found == pytest.approx(0.25, abs=0.011)


def walks(samples: int, seed: int, *, is_log: bool) -> Forecast:
    """Paths of a random walk whose drift is uncertain."""
    noise = normal(samples, 4, 1, STEPS, seed=seed)
    drift = 0.3 * normal(samples, 1, 1, 1, seed=seed + 1_000_000)
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
    np.testing.assert_allclose(found["totals mean"], found["mean"].cumsum())
    levels = [0.5, 0.1, 0.9, 0.25]
    names = ["median", "credible lower", "credible upper", "quantiles"]
    expected = np.quantile(sums, levels, axis=0, method="weibull")
    for name, values in zip(names, expected, strict=True):
        np.testing.assert_allclose(found[f"totals {name}"].ravel(), values)
    above = [(sums > threshold).mean(0) for threshold in (2.0, 6.0)]
    np.testing.assert_allclose(found["totals exceeds"], np.stack(above, 1))


@pytest.mark.parametrize("theta", [0.0, 0.5])
def test_the_stated_errors_are_those_of_other_draws(theta: float) -> None:
    """The deviation over 200 forecasts is known to 5 %, the mean stated error better."""
    sums = SumCalibration(theta, Residuals((1.0,), 9.0))
    calibration = PathCalibration(1.0, 0.0, STEPS, (1.0,), 9, 9.0, sums=sums)
    asked = PredictOptions(
        totals=Totals((2.0,)), quantiles=(0.9,), return_mc_errors=True, interval_kinds=("credible",)
    )
    runs = [
        replace(walks(50, seed, is_log=False), calibration=calibration, seed=seed).summarise(asked)
        for seed in range(200)
    ]
    for name, error in (
        ("totals mean", "totals mc_error"),
        ("totals mean", "error of total_mean"),
        ("totals median", "error of total_median"),
        ("totals quantiles", "error of total_quantile_0.9"),
        ("totals exceeds", "error of total_exceeds_2.0"),
    ):
        actual = np.stack([run[name].ravel() for run in runs]).std(0)[2:]
        stated = np.sqrt(np.mean([run[error][2:] ** 2 for run in runs], axis=0))
        np.testing.assert_allclose(stated, actual, rtol=0.25, err_msg=error)
