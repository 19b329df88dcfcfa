"""Series whose times are those of a clock that is changed twice a year."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import ForecastConfig, ZonedTime
from models.exceptions import InvalidData
from models.features.clock import Clock
from models.features.columns import Columns
from models.features.encoders import DatetimeEncoder
from models.forecasting.model import Forecaster
from models.forecasting.series import split_series
from models.forecasting.steps import Spacing
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import QUICK, configure, fit

BERLIN = ZonedTime(column="time", zone="Europe/Berlin")
HOUR = np.timedelta64(1, "h")
OPTIONS = PredictOptions(samples=20)


def _loads(first: str, count: int, *, zone: str | None = "Europe/Berlin") -> dict[str, np.ndarray]:
    """A load by the hour that is high from 8:00 on the clock of Berlin, with local times."""
    instants = np.datetime64(first, "us") + np.arange(count) * HOUR
    local = Clock.of("Europe/Berlin").local(instants)
    hours = (local - local.astype("datetime64[D]")) / HOUR
    noise = np.random.default_rng(0).normal(size=count)
    values = np.where((hours >= 8) & (hours < 20), 20.0, 10.0) + 0.1 * noise
    return {"time": instants if zone is None else local, "y": values}


@pytest.fixture(scope="module")
def model() -> Forecaster:
    forecast = ForecastConfig(time=BERLIN, horizon=12, context=4, season=24, transform="none")
    return fit(_loads("2024-10-16T22:00", 400), forecast=forecast, training=QUICK)


@pytest.mark.parametrize("step", [1, -1])
def test_the_double_hour_is_two_steps(step: int) -> None:
    columns = _loads("2024-10-25T22:00", 72)
    table = {name: values[::step] for name, values in columns.items()}
    (found,) = split_series(table, "y", ForecastConfig(time=BERLIN))
    expected = np.datetime64("2024-10-25T22:00", "us") + np.arange(72) * HOUR
    assert (found.times == expected).all()
    assert (found.values == columns["y"]).all()
    assert Spacing.fit([found.times], "Europe/Berlin").is_regular


def test_the_hour_of_spring_is_no_gap() -> None:
    columns = _loads("2024-03-29T23:00", 72)
    (found,) = split_series(columns, "y", ForecastConfig(time=BERLIN))
    assert (len(found), found.absent) == (72, 0)


def test_without_a_zone_the_double_hour_is_explained() -> None:
    with pytest.raises(InvalidData) as error:
        split_series(_loads("2024-10-25T22:00", 72), "y", ForecastConfig(time="time"))
    assert str(error.value) == (
        "the table has 2 rows of time 2024-10-27 02:00: a series has one value at a time. Keep one "
        "of the rows, or add them up; if they are of several series, name the column of the series "
        "in forecast.key; if the clock was set back here, train with its time zone, which tells "
        'the two hours apart: forecast.time {"column": "time", "zone": "Europe/Berlin"} '
        "(rows 26 and 27, counting from 0)"
    )


def test_a_time_that_the_clock_skipped_is_refused() -> None:
    hours = np.datetime64("2024-03-30", "us") + np.arange(48) * HOUR
    with pytest.raises(InvalidData) as error:
        split_series({"time": hours, "y": np.arange(48.0)}, "y", ForecastConfig(time=BERLIN))
    assert error.value.path == "/forecast/time"
    assert str(error.value) == (
        "2024-03-31 02:00 in 'time' does not exist in Europe/Berlin, where the clock was set "
        "forward over it: correct it, or give times with an offset from UTC; if these times ignore "
        "summer time, give the zone 'Etc/GMT-1' (row 26, counting from 0)"
    )


@pytest.mark.parametrize(
    ("time", "path", "message"),
    [
        (replace(BERLIN, zone="Berlin"), "/forecast/time/zone", "'Europe/Berlin' is near"),
        (replace(BERLIN, column="y"), "/forecast/time/zone", "are numbers, which have no zone"),
        (replace(BERLIN, column="day"), "/forecast/time", "column 'day' is not there"),
    ],
)
def test_a_wrong_zone_is_refused(time: ZonedTime, path: str, message: str) -> None:
    columns = _loads("2024-10-25T22:00", 72)
    columns["sales"] = columns["y"]
    with pytest.raises(InvalidData, match=message) as error:
        configure(columns, forecast=ForecastConfig(time=time))
    assert error.value.path == path


def test_phases_and_forecasts_follow_the_clock(model: Forecaster) -> None:
    """The last days of training are in winter; these are in summer."""
    (first, *_) = model.encoder.encoders
    assert isinstance(first, DatetimeEncoder)
    assert (first.zone, model.spacing.zone) == ("Europe/Berlin", "Europe/Berlin")
    history = _loads("2025-05-01T22:00", 120)
    found = model.predict(history, OPTIONS)
    expected = np.datetime64("2025-05-06T22:00", "us") + np.arange(12) * HOUR
    assert (found["time"] == expected).all()
    assert (found.mean[:8] < 14).all()
    assert (found.mean[8:] > 16).all()


def test_a_history_over_the_double_hour_is_read(model: Forecaster) -> None:
    history = _loads("2025-10-21T22:00", 122)  # up to 1:00 before the clock is set back twice
    found = model.predict(history, OPTIONS)
    assert found["time"][0] == np.datetime64("2025-10-27T00:00", "us")
    assert (np.diff(found["time"]) == HOUR).all()


def test_instants_and_local_times_give_one_answer(model: Forecaster) -> None:
    """A version that takes UTC differs only in how it reads."""
    history = _loads("2025-05-01T22:00", 120)
    time = replace(BERLIN, utc=True)
    other = replace(
        model, config=replace(model.config, forecast=replace(model.forecast, time=time))
    )
    same = other.predict(
        {**history, "time": _loads("2025-05-01T22:00", 120, zone=None)["time"]}, OPTIONS
    )
    assert (model.predict(history, OPTIONS).mean == same.mean).all()


def test_days_of_23_and_25_hours_are_steps() -> None:
    days = np.datetime64("2024-02-01", "us") + np.arange(300) * np.timedelta64(1, "D")
    table: Columns = {"time": days, "y": np.arange(300.0)}
    (found,) = split_series(table, "y", ForecastConfig(time=BERLIN))
    spacing = Spacing.fit([found.times], "Europe/Berlin")
    assert (len(found), found.absent, spacing.is_regular) == (300, 0, True)
    clock = Clock.of("Europe/Berlin")
    assert (clock.local(spacing.after(found.times[:1], 299)) == days[1:]).all()
