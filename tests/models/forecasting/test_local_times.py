"""Local times, and panels of series."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from models.config import ForecastConfig, ZonedTime
from models.exceptions import InvalidData
from models.features.clock import Clock
from models.features.columns import Columns
from models.features.encoders import DatetimeEncoder
from models.forecasting.backtest import with_stand_ins, without
from models.forecasting.model import Forecaster
from models.forecasting.origins import MAX_ORIGINS, find_origins, weighing_origins
from models.forecasting.panel import CutRows, Panel, Stacked, fit_frame
from models.forecasting.series import Series, split_series
from models.forecasting.steps import Spacing
from models.forecasting.windows import Frame, fill, windows
from models.prediction.options import PredictOptions
from models.training.train import train
from tests.models.forecasting.series_cases import QUICK, configure, fit, in_panel, sales, types_of

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


NOISE = 0.5
PHI = 0.8


def panel_of(count: int, steps: int, seed: int = 0) -> Columns:
    """AR(1) around the level of each series: y_t = m + φ (y_{t−1} − m) + e, e ~ N(0, NOISE²)."""
    random = np.random.default_rng(seed)
    level = 10 * random.normal(size=count)
    y = np.empty((count, steps))
    y[:, 0] = level + NOISE * random.normal(size=count) / np.sqrt(1 - PHI**2)
    for t in range(1, steps):
        y[:, t] = level + PHI * (y[:, t - 1] - level) + NOISE * random.normal(size=count)
    return in_panel([f"shop {i}" for i in range(count)], y=y)


def with_gaps(columns: Columns) -> Columns:
    values = columns["y"].copy()
    values[[17, 45, 46]] = np.nan
    return {**columns, "y": values}


def test_cut_windows_are_those_of_each_series_alone() -> None:
    """By `windows`, which cuts one series at a time; no window spans two series or a gap."""
    columns = with_gaps(panel_of(3, 30))
    series = split_series(columns, "y", ForecastConfig(time="time", key="shop"))
    stacked, frame = Stacked.of(series), Frame(context=4, season=2)
    dynamic = torch.arange(90.0).unsqueeze(1)
    begins = torch.from_numpy(stacked.begins)
    values = np.concatenate([fill(one.values, frame.season) for one in series])
    static, nothing = torch.tensor([[0.0], [1.0], [2.0]]), torch.empty(90, 0)
    unknown = torch.zeros(90).long()
    panel = Panel(torch.from_numpy(values), dynamic, nothing, unknown, static, begins)
    at = torch.from_numpy(np.flatnonzero(stacked.whole_windows(stacked.columns["y"], frame.span)))
    alone = [windows(one.values, frame.span, frame.season) for one in series]
    past = torch.cat([part for _, part, _ in alone])
    following = torch.cat([part for _, _, part in alone])
    frame = frame.fit(past, following)
    assert fit_frame(panel, replace(frame, spread=1.0), at) == frame
    rows = CutRows.of(panel, frame, at)
    assert len(rows) == len(past) < 90 - 3 * 6
    cut = rows[torch.arange(len(rows))]
    sequences = cut.inputs[:, :-1].unflatten(1, (4, 3))
    torch.testing.assert_close(sequences[..., :2], frame.read(past).inputs.float())
    torch.testing.assert_close(cut.targets, frame.targets(past, following))
    numbers = np.concatenate([np.full(len(n), i) for i, (n, _, _) in enumerate(alone)])
    steps = np.concatenate([n for n, _, _ in alone]) + 30 * numbers
    known = torch.from_numpy(steps[:, None] + np.arange(-3, 1)).float()
    assert torch.equal(sequences[..., 2], known)
    assert torch.equal(cut.inputs[:, -1], torch.from_numpy(numbers).float())


def test_origins_have_a_readable_past_and_a_known_future_evenly_thinned() -> None:
    random = np.random.default_rng(1)
    series = []
    for i, length in enumerate((40, 9, 0, 200)):
        values = random.normal(size=length)
        values[random.random(length) < 0.05] = np.nan
        series.append(Series(str(i), {}, np.arange(length), values))
    scored, span, horizon = [20, 0, 0, 3], 5, 3
    every = [
        (one.key, first, max(start, span))
        for one, start in zip(series, scored, strict=True)
        for first in range(max(start, span), len(one) - horizon + 1)
        if not np.isnan(one.values[first - 1 : first + horizon]).any()
        and np.isnan(one.values[first - span : first]).mean() <= 0.5
        and not np.isnan(one.values[: first - span + 1]).all()
    ]
    kept = np.unique(np.linspace(0, len(every) - 1, MAX_ORIGINS).round().astype(int))
    found = find_origins(series, scored, span, horizon)
    assert len(every) > MAX_ORIGINS
    assert [(o.series.key, o.first, o.scored) for o in found] == [every[i] for i in kept]


NAN = np.nan


def test_a_missing_step_counts_as_the_others_of_its_forecast() -> None:
    """Means over the known steps, so that each forecast weighs the same."""
    targets = np.array([[1.0, NAN, 3.0], [NAN, 5.0, 6.0], [7.0, 8.0, 9.0]])
    stand_ins = with_stand_ins(targets)
    assert stand_ins.tolist() == [1, 1, 3, 5, 5, 6, 7, 8, 9]
    found = without({"mae": stand_ins.square()}, targets)["mae"].view(3, 3)
    assert found.mean(1).tolist() == [5.0, 30.5, pytest.approx((49 + 64 + 81) / 3)]
    assert found[0].tolist() == [1.0, 5.0, 9.0]


def test_a_series_with_a_gap_in_every_stretch_is_learned_and_scored() -> None:
    columns = sales(120)
    columns["sales"][5::7] = NAN
    training = replace(QUICK, epochs=2)
    config = configure(columns, forecast=ForecastConfig(horizon=12), training=training)
    series = split_series(columns, "sales", config.series)
    weighing = weighing_origins(series, config, 24)
    assert len(weighing) > 20  # that weigh the classical members
    model = train(columns, types_of(columns), config)
    metrics = model.variants_by_prune[0.0].metrics
    assert metrics["origins"] > 0
    assert np.isfinite(metrics["crps"])
    assert np.isfinite(metrics["baselines"]["seasonal_naive"]["crps"])


def _tills() -> dict[str, np.ndarray]:
    days = np.datetime64("2024-01-01", "us") + np.arange(10) * np.timedelta64(1, "D")
    return {
        "day": np.tile(days, 2),
        "shop": np.repeat(np.array(["north", "south"], dtype=object), 10),
        "sold": np.arange(20.0),
    }


def _error(columns: Columns, forecast: ForecastConfig) -> InvalidData:
    with pytest.raises(InvalidData) as error:
        split_series(columns, "sold", forecast)
    return error.value


def test_with_a_key_the_rows_are_named_and_no_key_is_advised() -> None:
    columns = _tills()
    columns["day"][14] = columns["day"][13]
    error = _error(columns, ForecastConfig(time="day", key="shop"))
    assert error.path == "/forecast/time"
    assert error.rows == [13, 14]
    assert str(error) == (
        "shop 'south' has 2 rows of day 2024-01-04: a series has one value at a time. Keep "
        "one of the rows, or add them up (rows 13 and 14, counting from 0)"
    )


def test_without_a_key_the_key_is_advised_and_the_other_times_are_counted() -> None:
    error = _error(_tills(), ForecastConfig(time="day"))
    assert error.path == "/forecast/key"
    assert "the table has 2 rows of day 2024-01-01, and 9 more such times" in str(error)
    assert "name the column of the series in forecast.key (rows 0 and 10, counting" in str(error)
