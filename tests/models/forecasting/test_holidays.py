"""Holidays are read as inputs that are known ahead, and stay with the version."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.artifact.files import read_model, write_model
from models.config import ForecastConfig, MAPConfig, TrainingConfig
from models.exceptions import InvalidInput
from models.features.columns import Columns
from models.forecasting.holidays import Holidays
from models.forecasting.steps import Spacing
from models.prediction.options import PredictOptions
from models.training.train import train
from tests.models.forecasting.series_cases import configure, types_of


def number(day: str) -> int:
    return int(np.datetime64(day, "D").astype(int))


def calendar(*days: str) -> Holidays:
    return Holidays(tuple(map(number, days)), number("2020-01-01"), number("2030-12-31"))


def test_holidays_within_steps_are_counted() -> None:
    holidays = calendar("2024-04-30", "2024-05-01", "2024-05-09", "2024-06-03")
    months = np.array(["2024-04-01", "2024-05-01", "2024-06-01", "2024-07-01"], "datetime64[us]")
    assert holidays.read(months, Spacing("month", 1.0)).tolist() == [[1], [2], [1], [0]]
    ends = np.array(["2024-04-30", "2024-05-31", "2024-06-30"], "datetime64[us]")
    assert holidays.read(ends, Spacing("month", 1.0, month_end=True)).tolist() == [[1], [2], [1]]
    assert holidays.read(months[:2], Spacing("month", 3.0)).tolist() == [[4], [3]]
    weeks = np.array(["2024-04-29", "2024-05-06", "2024-05-13"], "datetime64[us]")
    week = Spacing("microsecond", 7 * 86_400e6)
    assert holidays.read(weeks, week).tolist() == [[2], [1], [0]]


def test_a_day_and_an_hour_know_the_days_around_them() -> None:
    """Inputs: today, tomorrow, yesterday."""
    holidays = calendar("2024-05-01")
    days = np.array(["2024-04-29", "2024-04-30", "2024-05-01", "2024-05-02"], "datetime64[us]")
    expected = [[0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    noon = np.timedelta64(12, "h")
    for spacing in (Spacing("microsecond", 86_400e6), Spacing("weekday", 1.0, week="1111100")):
        assert holidays.read(days, spacing).tolist() == expected
        assert holidays.read(days + noon, spacing).tolist() == expected
    assert holidays.read(days + noon, Spacing("microsecond", 3_600e6)).tolist() == expected
    late = days + np.timedelta64(23, "h")
    assert holidays.read(late, Spacing("microsecond", 3_600e6)).tolist() == expected


def test_days_of_which_nothing_is_known_are_refused() -> None:
    times = np.array(["2031-03-01"], "datetime64[us]")
    with pytest.raises(InvalidInput, match="2031-03"):
        calendar().read(times, Spacing("microsecond", 86_400e6))


def test_a_forecast_has_the_whole_effect_of_a_holiday(tmp_path: Path) -> None:
    """Half of all is sold on a holiday; the network has hardly learned, other members have."""
    random, steps = np.random.default_rng(0), 110
    days = np.flatnonzero(random.random(steps + 30) < 0.1)
    logs = 0.02 * random.normal(size=steps).cumsum() + 0.03 * random.normal(size=steps)
    logs[days[days < steps]] += np.log(0.5)
    times = (np.datetime64("1970-01-01") + np.arange(steps)).astype("datetime64[us]")
    columns: Columns = {"time": times, "y": 100 * np.exp(logs)}
    forecast = ForecastConfig(time="time", horizon=1, season=1, holidays="here", transform="log")
    config = configure(
        columns,
        forecast=forecast,
        method=MAPConfig(kind="map"),
        training=TrainingConfig(epochs=1),
    )
    known = Holidays(tuple(days.tolist()), -10_000, 10_000)
    model = train(columns, types_of(columns), config, holidays=known)
    assert model.future_inputs == ()
    closed = replace(model, holidays=replace(known, days=(*days[days < steps].tolist(), steps)))
    opened = replace(model, holidays=replace(known, days=tuple(days[days < steps].tolist())))
    means = [one.predict(columns, PredictOptions()).median[0] for one in (closed, opened)]
    assert means[0] / means[1] == pytest.approx(0.5, abs=0.06)
    write_model(closed, tmp_path)
    again = read_model(tmp_path).predict(columns, PredictOptions())
    assert again.median[0] == pytest.approx(means[0])  # type: ignore[union-attr]
