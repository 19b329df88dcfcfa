"""Calibrations of forecasts against closed forms, a table's calibration, and fresh errors."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.calibration import LabelledMixture, fit_scale
from models.evaluation.path_calibration import (
    PathCalibration,
    Residuals,
    Worth,
    fit_scales,
    independent_errors,
    progress,
)
from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.prediction.predictive import GaussianMixture

HORIZON = 6


def _normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize(
    ("series", "firsts", "horizon", "expected"),
    [
        ([0], [5], 1, 1.0),
        ([0, 0, 0], [5, 6, 7], 1, 3.0),  # steps of their own
        ([0], [5], 2, 4 / 3),  # ρ² = 1/2 between its steps: 4 ÷ (2 + 2 · 1/2)
        ([0, 1], [5, 5], 2, 8 / 3),  # other series
        ([0, 0], [5, 7], 2, 8 / 3),  # a horizon apart
        ([0, 0], [5, 6], 2, 16 / 7.5),  # the second of one and the first of the other share a step
    ],
)
def test_errors_that_share_steps_count_less(
    series: list[int], firsts: list[int], horizon: int, expected: float
) -> None:
    found = independent_errors(np.array(series), np.array(firsts), horizon)
    assert found == pytest.approx(expected)


def test_their_number_is_that_of_the_variance_they_estimate() -> None:
    """20,000 random walks: the variance of a variance's estimate is 2 ÷ n, to some 2 %."""
    walks = np.random.default_rng(0).normal(size=(20_000, 18)).cumsum(1)
    walks = np.concatenate([np.zeros((20_000, 1)), walks], axis=1)
    h = np.arange(1, HORIZON + 1)
    errors = np.stack([(walks[:, o + h] - walks[:, [o]]) / np.sqrt(h) for o in range(13)], 1)
    found = independent_errors(np.zeros(13, int), np.arange(13), HORIZON)
    assert np.square(errors).mean((1, 2)).var() == pytest.approx(2 / found, rel=0.06)


def test_one_step_is_scaled_as_rows_of_a_table_are_beside_a_wider_prior() -> None:
    """The variances of the priors are ½² and 0.2²: as many times more errors weigh the same."""
    errors = 1.7 * _normal(30)
    mixture = GaussianMixture(torch.zeros(1, 30).double(), torch.ones(1, 30).double())
    expected = fit_scale([LabelledMixture(mixture, errors, None)])
    found = fit_scales(errors.unsqueeze(1), 30 * 0.5**2 / 0.2**2)
    assert found.scale == pytest.approx(expected, rel=1e-4)
    assert found.growth == 0


def test_scales_that_grow_with_the_step_are_found() -> None:
    """c_h = 0.5 · 6^(g_h): 4,000 forecasts tell log c to some hundredths.

    Their errors count tenfold, so that the prior does not show.
    """
    c = 0.5 * torch.exp(math.log(6) * progress(HORIZON, HORIZON))
    found = fit_scales(c.sqrt() * _normal(4_000, HORIZON), 40_000.0)
    assert math.log(found.scale) == pytest.approx(math.log(0.5), abs=0.08)
    assert found.growth == pytest.approx(math.log(6), abs=0.12)
    torch.testing.assert_close(found.factors(HORIZON), c, rtol=0.1, atol=0)
    assert found.factors(9)[6:].tolist() == [found.factors(HORIZON)[-1].item()] * 3


@pytest.mark.parametrize("size", [1e-3, 30.0])
def test_wild_errors_have_a_finite_scale_at_which_the_slope_is_zero(size: float) -> None:
    """∂/∂a of the fit: n (1 − mean z² ÷ c_h) ÷ 2 + a ÷ 0.2² = 0, for equal errors at each step."""
    found = fit_scales(torch.full((20, 1), size, dtype=torch.float64), 20.0)
    slope = 10 * (1 - size**2 / found.scale) + 25 * math.log(found.scale)
    assert abs(slope) < 1e-6 * max(1.0, size**2)


def test_few_errors_of_one_stretch_move_the_scale_little_and_many_to_where_they_are() -> None:
    """Of z² = ¼: 12 errors make c 0.84, and 10,000 make it ¼, to the hundredth."""
    errors = torch.full((40, 1), 0.5, dtype=torch.float64)
    assert fit_scales(errors, 12.0).scale == pytest.approx(0.845, abs=0.002)
    assert fit_scales(errors, 10_000.0).scale == pytest.approx(0.25, abs=0.01)


def test_a_width_is_a_rank_of_as_many_rows_as_the_errors_are_worth() -> None:
    residuals = tuple(float(i) for i in range(1, 101))
    one = PathCalibration(1.0, 0.0, 5, residuals, 20, 19.7)
    assert one.half_width(0.5) == 51.0  # the 10th of 19 rows: ⌈10 · 101 ÷ 20⌉
    assert one.half_width(0.9) == 91.0
    assert one.half_width(0.95) == 96.0
    assert one.half_width(0.96) == math.inf


def _forecast(origins: int, seed: int) -> tuple[Forecast, Tensor]:
    """Forecasts of standard deviation 1 of errors whose deviation rises from 1 to 2 by the step."""
    centre = 3 * _normal(1, 1, origins, HORIZON, seed=seed)
    means = centre + 0.1 * _normal(50, 4, origins, HORIZON, seed=seed + 1)
    variances = torch.full_like(means, 0.99)
    values = means + variances.sqrt() * _normal(*means.shape, seed=seed + 2)
    deviation = torch.linspace(1, 2, HORIZON).double()
    targets = centre[0, 0] + deviation * _normal(origins, HORIZON, seed=seed + 3)
    return Forecast(Paths(values, means, variances, means), PLAIN), targets.flatten()


def test_calibrated_paths_have_the_wanted_variance_and_the_same_means() -> None:
    forecast, targets = _forecast(60, 0)
    calibration = forecast.fit_calibration(targets, Worth(60.0))
    assert calibration is not None
    calibrated = Forecast(forecast.drawn, PLAIN, calibration)
    c = calibration.factors(HORIZON).repeat(60)
    torch.testing.assert_close(calibrated.mean(), forecast.mean())
    torch.testing.assert_close(calibrated.mixture.total(), c * forecast.mixture.total())
    torch.testing.assert_close(calibrated.draws.var(0), c * forecast.draws.var(0), rtol=0.1, atol=0)
    torch.testing.assert_close(calibrated.ood_score(), forecast.ood_score())


def test_calibrated_intervals_hold_fresh_errors() -> None:
    """Errors of up to twice the predicted size: 90 % intervals hold 75 % of them before, then 90 %.

    400 forecasts calibrate: the shares of 2,400 fresh steps have a standard error of 0.6 points,
    and the scale's own error is about a point.
    """
    forecast, targets = _forecast(400, 10)
    calibration = forecast.fit_calibration(targets, Worth(400.0))
    fresh, truth = _forecast(400, 50)
    scores = Forecast(fresh.drawn, PLAIN, calibration).scores(truth)
    share = {name: float(values.mean()) for name, values in scores.items()}
    assert share["uncalibrated_coverage_0.9"] < 0.8
    assert share["coverage_0.9"] == pytest.approx(0.9, abs=0.03)
    assert share["conformal_coverage_0.9"] == pytest.approx(0.9, abs=0.03)
    assert share["log_likelihood"] > share["uncalibrated_log_likelihood"]
    last = truth.new_tensor(range(len(truth))) % HORIZON == HORIZON - 1
    assert float(scores["coverage_0.9"][last].mean()) == pytest.approx(0.9, abs=0.05)


def test_forecasts_that_are_not_finite_are_not_calibrated() -> None:
    forecast, targets = _forecast(20, 0)
    targets[3] = math.inf
    assert forecast.fit_calibration(targets, Worth(20.0)) is None


def test_few_independent_errors_are_ranked_as_many_that_depend_on_each_other() -> None:
    """The 9th of 9 covers 90 % on average, as the 90th of 99 does; the 99th would cover more."""
    one = Residuals(tuple(float(i) for i in range(1, 100)), 9.9)
    assert one.at(0.9) == one.widest == 90.0
    assert one.at(0.91) == math.inf


def test_a_step_with_errors_of_its_own_shape_is_covered_if_it_has_enough_of_them() -> None:
    """Step 3 has errors three times as large, which no scale that grows with the step can follow.

    200 errors tell a coverage to 2 points, and 20,000 fresh ones more exactly.
    """
    deviation = torch.tensor([1.0, 1, 3, 1, 1, 1]).double()
    fitted = fit_scales(deviation * _normal(200, HORIZON, seed=3), 200.0)
    errors = deviation * _normal(200, HORIZON, seed=3) / fitted.factors(HORIZON).sqrt()
    fresh = deviation * _normal(20_000, HORIZON, seed=4) / fitted.factors(HORIZON).sqrt()
    pooled = fitted.ranked(errors.abs())
    own = fitted.ranked(errors.abs(), (200.0,) * HORIZON)
    some = fitted.ranked(errors.abs(), (200.0,) * 2 + (8.9,) * (HORIZON - 2))

    def covered(one: PathCalibration) -> list[float]:
        return (fresh.abs() <= one.half_widths(0.9, HORIZON)).double().mean(0).tolist()

    assert covered(pooled)[2] < 0.75
    assert covered(own) == pytest.approx([0.9] * HORIZON, abs=0.06)
    assert covered(some)[:2] == covered(own)[:2]
    assert some.half_widths(0.9, HORIZON)[3:].tolist() == [pooled.half_width(0.9)] * 3
    beyond = own.half_widths(0.9, 8)
    assert beyond[6:].tolist() == [beyond[5]] * 2


def test_a_higher_level_never_has_a_narrower_interval() -> None:
    """Own errors end at a level of 8/9; above it, all errors would give less."""
    small, large = torch.rand(200, 1).double(), 5 + torch.rand(200, 1).double()
    one = PathCalibration(1.0, 0.0, 2, (), 200, 50.0).ranked(
        torch.cat([small, large], 1), (8.0, 8.0)
    )
    widths = torch.stack([one.half_widths(level, 2) for level in (0.3, 0.6, 0.85, 0.9, 0.95)])
    assert bool((widths[1:] >= widths[:-1]).all())
