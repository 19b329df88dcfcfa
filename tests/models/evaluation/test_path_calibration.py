"""Calibrations of forecasts against closed forms, a table's calibration, and fresh errors."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from models.evaluation.path_calibration import PathCalibration, Worth, fit_scales, progress
from models.forecasting.forecast import Forecast
from models.forecasting.observation import PLAIN
from models.forecasting.rollout import Paths
from models.forecasting.worth import Overlaps

HORIZON = 6


def randn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize(
    ("series", "firsts", "horizon", "expected"),
    [
        ([0, 0, 0], [5, 6, 7], 1, 3.0),  # steps of their own
        ([0], [5], 2, 4 / 3),  # ρ² = 1/2 between its steps: 4 ÷ (2 + 2 · 1/2)
        ([0, 0], [5, 7], 2, 8 / 3),  # a horizon apart
        ([0, 0], [5, 6], 2, 16 / 7.5),  # the second of one and the first of the other share a step
    ],
)
def test_errors_that_share_steps_count_less(
    series: list[int], firsts: list[int], horizon: int, expected: float
) -> None:
    found = Overlaps(np.array(series), np.array(firsts), horizon).worth().together
    assert found == pytest.approx(expected)


def test_scales_that_grow_with_the_step_are_found() -> None:
    """c_h = 0.5 · 6^(g_h): 4,000 forecasts tell log c to some hundredths.

    Their errors count tenfold, so that the prior does not show.
    """
    c = 0.5 * torch.exp(math.log(6) * progress(HORIZON, HORIZON))
    found = fit_scales(c.sqrt() * randn(4_000, HORIZON), 40_000.0)
    assert math.log(found.scale) == pytest.approx(math.log(0.5), abs=0.08)
    assert found.growth == pytest.approx(math.log(6), abs=0.12)
    torch.testing.assert_close(found.factors(HORIZON), c, rtol=0.1, atol=0)
    assert found.factors(9)[6:].tolist() == [found.factors(HORIZON)[-1].item()] * 3


def _forecast(origins: int, seed: int) -> tuple[Forecast, Tensor]:
    """Forecasts of standard deviation 1 of errors whose deviation rises from 1 to 2 by the step."""
    centre = 3 * randn(1, 1, origins, HORIZON, seed=seed)
    means = centre + 0.1 * randn(50, 4, origins, HORIZON, seed=seed + 1)
    variances = torch.full_like(means, 0.99)
    values = means + variances.sqrt() * randn(*means.shape, seed=seed + 2)
    deviation = torch.linspace(1, 2, HORIZON).double()
    targets = centre[0, 0] + deviation * randn(origins, HORIZON, seed=seed + 3)
    return Forecast(Paths(values, means, variances, means), PLAIN), targets.flatten()


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


def test_a_step_with_errors_of_its_own_shape_is_covered_if_it_has_enough_of_them() -> None:
    """Step 3 has errors three times as large, which no scale that grows with the step can follow.

    200 errors tell a coverage to 2 points, and 20,000 fresh ones more exactly.
    """
    deviation = torch.tensor([1.0, 1, 3, 1, 1, 1]).double()
    fitted = fit_scales(deviation * randn(200, HORIZON, seed=3), 200.0)
    errors = deviation * randn(200, HORIZON, seed=3) / fitted.factors(HORIZON).sqrt()
    fresh = deviation * randn(20_000, HORIZON, seed=4) / fitted.factors(HORIZON).sqrt()
    pooled = fitted.ranked(errors.abs())
    own = fitted.ranked(errors.abs(), (200.0,) * HORIZON)
    some = fitted.ranked(errors.abs(), (200.0,) * 2 + (8.9,) * (HORIZON - 2))

    def covered(one: PathCalibration) -> list[float]:
        return (fresh.abs() <= one.half_widths(0.9, HORIZON)).double().mean(0).tolist()

    assert covered(pooled)[2] < 0.75
    assert covered(own) == pytest.approx([0.9] * HORIZON, abs=0.06)
    assert covered(some)[:2] == covered(own)[:2]
    assert some.half_widths(0.9, HORIZON)[3:].tolist() == [float(pooled.half_widths(0.9, 1))] * 3
    beyond = own.half_widths(0.9, 8)
    assert beyond[6:].tolist() == [beyond[5]] * 2
