"""Holidays are read as inputs that are known ahead, and stay with the version."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from models.artifact.files import read_model, write_model
from models.artifact.schema import SeriesDocument
from models.config import ForecastConfig, MAPConfig, ModelConfig, RecurrentConfig, TrainingConfig
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import ColumnProfile, Columns
from models.forecasting.holidays import Holidays
from models.forecasting.model import Forecaster
from models.forecasting.preparation import prepare_series
from models.forecasting.spacing import Spacing
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

TYPES = {"day": "datetime", "sales": "number"}
STEPS, HORIZON, EFFECT, NOISE = 500, 8, -30.0, 2.0
START = np.datetime64("2021-01-01", "us")


def number(day: str) -> int:
    return int(np.datetime64(day, "D").astype(int))


def calendar(*days: str) -> Holidays:
    return Holidays(tuple(map(number, days)), number("2020-01-01"), number("2030-12-31"))


def simulated() -> tuple[Columns, Holidays]:
    """A level of 100 with NOISE, and EFFECT more on one day in 10, drawn at random."""
    random = np.random.default_rng(0)
    ends = number("2020-01-01"), number("2030-12-31")
    days = np.flatnonzero(random.random(ends[1] - ends[0]) < 1 / 10) + ends[0]
    holidays = Holidays(tuple(days.tolist()), *ends)
    times = START + np.arange(STEPS) * np.timedelta64(1, "D")
    off = np.isin(times.astype("datetime64[D]").astype(int), days)
    values = 100 + EFFECT * off + NOISE * random.normal(size=STEPS)
    return {"day": times, "sales": values}, holidays


def configure(columns: Columns, **options: object) -> ModelConfig:
    forecast = ForecastConfig(
        horizon=HORIZON, context=4, season=1, transform="log", classics=False, holidays="here"
    )
    config = ModelConfig(
        target="sales",
        task="forecasting",
        forecast=replace(forecast, **options),  # type: ignore[arg-type]
        network=RecurrentConfig(kind="gru", hidden=(8,)),
        method=MAPConfig(kind="map"),
        pruning=(),
        training=TrainingConfig(epochs=20, learning_rate=0.03, refit=False),
    )
    profiles = [ColumnProfile(name=name, type=TYPES[name]) for name in columns]  # type: ignore[arg-type]
    return resolve(config, profiles, len(columns["sales"]), lambda names: columns)


@pytest.fixture(scope="module")
def model() -> Forecaster:
    columns, holidays = simulated()
    found = train(columns, TYPES, configure(columns), holidays=holidays)
    assert isinstance(found, Forecaster)
    return found


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


@pytest.mark.parametrize("year", ["2019", "2031"])
def test_days_of_which_nothing_is_known_are_refused(year: str) -> None:
    times = np.array([f"{year}-03-01"], "datetime64[us]")
    with pytest.raises(InvalidInput, match=f"from 2020-01-01 to 2030-12-31, and not of {year}-03"):
        calendar().read(times, Spacing("microsecond", 86_400e6))


def test_a_forecast_has_the_effect_of_holidays_ahead(model: Forecaster) -> None:
    """On holidays 70, on other days 100: only their calendar tells. The prior shrinks it."""
    columns, holidays = simulated()
    assert model.future_inputs == ()
    on, off = list[float](), list[float]()
    for origin in range(STEPS - 120, STEPS - HORIZON, HORIZON):
        past = {name: values[:origin] for name, values in columns.items()}
        found = model.predict(past, PredictOptions(samples=40))
        day = columns["day"][origin : origin + HORIZON].astype("datetime64[D]").astype(int)
        is_off = np.isin(day, holidays.days)
        on.extend(found.mean[is_off])
        off.extend(found.mean[~is_off])
    assert len(on) >= 5
    assert np.mean(on) - np.mean(off) < 0.6 * EFFECT
    assert abs(np.mean(off) - 100) < 4
    assert max(on) < min(off)


def test_a_version_keeps_its_holidays(model: Forecaster, tmp_path: Path) -> None:
    columns, _ = simulated()
    (tmp_path / "model").mkdir()
    write_model(model, tmp_path / "model")
    loaded = read_model(tmp_path / "model")
    assert isinstance(loaded, Forecaster)
    assert loaded.holidays == model.holidays
    one, two = (each.predict(columns, PredictOptions(samples=10)) for each in (model, loaded))
    assert np.array_equal(one.mean, two.mean)


def test_versions_from_before_there_were_holidays_load() -> None:
    columns, _ = simulated()
    model = prepare_series(columns, TYPES, configure(columns, holidays=None)).model
    assert isinstance(model, Forecaster)
    assert model.holidays is None
    document = model.to_json()["series"]
    del document["holidays"]
    assert "frame" in TypeAdapter(SeriesDocument).validate_python(document)


def test_numbers_have_no_holidays() -> None:
    columns = {"day": np.arange(100.0), "sales": np.random.default_rng(0).normal(size=100)}
    profiles = [ColumnProfile(name=name, type="number") for name in columns]
    config = ModelConfig(
        target="sales",
        task="forecasting",
        forecast=ForecastConfig(time="day", holidays="DE"),
    )
    with pytest.raises(InvalidData, match="numbers, which have no holidays") as caught:
        resolve(config, profiles, 100, lambda names: columns)
    assert caught.value.path == "/forecast/holidays"


def test_days_are_given_if_a_calendar_is_named_and_only_then() -> None:
    columns, holidays = simulated()
    with pytest.raises(ValueError, match="give its days"):
        train(columns, TYPES, configure(columns))
    with pytest.raises(ValueError, match="no others"):
        train(columns, TYPES, configure(columns, holidays=None), holidays=holidays)


def test_the_mixture_has_the_whole_effect_of_a_holiday() -> None:
    """Half of all is sold on a holiday; the network has hardly learned."""
    random, steps = np.random.default_rng(0), 110
    days = np.flatnonzero(random.random(steps + 30) < 0.1)
    logs = 0.02 * random.normal(size=steps).cumsum() + 0.03 * random.normal(size=steps)
    logs[days[days < steps]] += np.log(0.5)
    times = (np.datetime64("1970-01-01") + np.arange(steps)).astype("datetime64[us]")
    columns: Columns = {"time": times, "y": 100 * np.exp(logs)}
    forecast = ForecastConfig(time="time", horizon=1, season=1, holidays="here", transform="log")
    config = ModelConfig(
        target="y",
        task="forecasting",
        forecast=forecast,
        method=MAPConfig(kind="map"),
        network=RecurrentConfig(kind="rnn", hidden=(4,)),
        pruning=(),
        training=TrainingConfig(epochs=1),
    )
    profiles = [ColumnProfile(name="time", type="datetime"), ColumnProfile(name="y", type="number")]
    config = resolve(config, profiles, steps, lambda names: columns)
    known = Holidays(tuple(days.tolist()), -10_000, 10_000)
    model = train(columns, {"time": "datetime", "y": "number"}, config, holidays=known)
    assert isinstance(model, Forecaster)
    closed = replace(model, holidays=replace(known, days=(*days[days < steps].tolist(), steps)))
    opened = replace(model, holidays=replace(known, days=tuple(days[days < steps].tolist())))
    means = [one.predict(columns, PredictOptions()).median[0] for one in (closed, opened)]
    assert means[0] / means[1] == pytest.approx(0.5, abs=0.06)
