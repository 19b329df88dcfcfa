"""Absent steps, missing values and unequal steps: what is filled, what is learned, what is told."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from models.forecasting.problem import prepare_series
from models.forecasting.steps import Spacing
from models.forecasting.windows import fill, windows
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import QUICK, configure, fit, months, sales, types_of


def _without(columns: dict[str, Any], rows: list[int]) -> dict[str, np.ndarray]:
    return {name: np.delete(values, rows) for name, values in columns.items()}


def _blank(columns: dict[str, Any], rows: list[int]) -> dict[str, np.ndarray]:
    values = columns["sales"].copy()
    values[rows] = np.nan
    return {**columns, "sales": values}


def test_a_hole_has_the_shape_of_the_season_before_at_the_level_around_it() -> None:
    """Exact where the season repeats and the level is a line, whatever the hole's length."""
    steps = np.arange(60)
    values = 3.0 + 0.25 * steps + np.tile([0.0, 5.0, -2.0, 1.0], 15)
    for start, stop in ((20, 21), (17, 20), (30, 41)):
        gappy = values.copy()
        gappy[start:stop] = np.nan
        np.testing.assert_allclose(fill(gappy, 4), values, atol=1e-9)
    first = np.array([np.nan, 2.0, np.nan, np.nan, 5.0, np.nan])  # no season before: a line
    np.testing.assert_allclose(fill(first, 4), [np.nan, 2.0, 3.0, 4.0, 5.0, 5.0])


def test_what_is_filled_never_reads_what_is_predicted() -> None:
    """Values from the predicted one on change no window before it, holes or not."""
    random = np.random.default_rng(0)
    values = random.normal(size=80).cumsum()
    values[random.choice(np.arange(1, 79), 25, replace=False)] = np.nan
    for first in (40, 55, 70):
        changed = values.copy()
        changed[first:] += 100
        (steps, past, _), (again, other, _) = windows(values, 6, 3), windows(changed, 6, 3)
        assert (steps == again).all()
        upto = torch.from_numpy(steps <= first)
        assert torch.equal(past[upto], other[upto])


def test_a_hole_costs_two_windows_and_is_told() -> None:
    """That which would predict it, and that which would end in it; 24 others read it."""
    whole = prepare_series(sales(), types_of(sales()), configure(sales())).refit()
    for gappy, note in (
        (_blank(sales(), [40]), "1 steps have no target"),
        (_without(sales(), [40]), "1 steps have no row"),
    ):
        problem = prepare_series(gappy, types_of(gappy), configure(gappy)).refit()
        assert len(problem.rows) == len(whole.rows) - 2
        assert any(note in one for one in problem.model.notes)


def test_a_forecast_from_a_history_with_holes_is_near_that_of_the_whole() -> None:
    """Noise of a step is 3 %: a filled value is off by 5 %, a forecast by 3 % and more.

    Rows as consecutive steps would be a season off by a month: 15 % at the steepest.
    """
    forecaster = fit(sales(), training=replace(QUICK, epochs=30))
    options = PredictOptions(samples=50)
    whole = forecaster.predict(sales(), options)
    deviation = np.sqrt(whole.variance["total"])
    for delete, rows in ((_without, [62, 63, 64]), (_blank, [60, 66, 72, 78])):
        gappy = forecaster.predict(delete(sales(), rows), options)
        assert (gappy["time"] == whole["time"]).all()
        assert (np.abs(gappy.mean - whole.mean) < 1.5 * deviation).all()
        assert np.abs(gappy.mean - whole.mean).mean() < 0.6 * deviation.mean()


def _working_days(count: int, holidays: tuple[int, ...] = ()) -> np.ndarray:
    days = np.busday_offset("2024-01-01", np.arange(count))
    return np.delete(days, holidays).astype("datetime64[us]")


def test_working_days_are_consecutive_and_holidays_are_absent() -> None:
    times = _working_days(100, (30, 64))
    spacing = Spacing.fit([times[:80]])
    assert (spacing.unit, spacing.week, spacing.is_regular) == ("weekday", "1111100", True)
    assert (spacing.season, spacing.absent(times)) == (5, 2)
    assert spacing.is_whole(times).all()
    whole = _working_days(100)
    assert (spacing.after(whole[:80], 20) == whole[80:]).all()
    saturday = np.append(times[:4], np.datetime64("2024-01-06", "us"))
    assert (~spacing.is_whole(saturday)).sum() == 1


def test_months_may_be_told_by_other_days_and_days_by_none() -> None:
    last = np.busday_offset(np.arange("2020-02", "2023-02", dtype="datetime64[M]"), -1, "forward")
    spacing = Spacing.fit([last.astype("datetime64[us]")])
    assert (spacing.unit, spacing.is_regular, spacing.season) == ("month", True, 12)
    four_weeks = np.datetime64("2020-01-31", "us") + np.arange(11) * np.timedelta64(28, "D")
    assert Spacing.fit([four_weeks]).unit == "microsecond"
    mostly_absent = months(900)[[0, 1, 2, 400, 800]]
    assert not Spacing.fit([mostly_absent]).is_regular
