"""Covariates, holidays and effects of what is known ahead."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Float64
from torch import Tensor

from core import calendars
from models.artifact.files import read_model, write_model
from models.config import FeatureConfig, ForecastConfig, MAPConfig, RecurrentConfig, TrainingConfig
from models.config import TrainingConfig as Training
from models.exceptions import InvalidInput
from models.features.columns import Columns
from models.forecasting.classics.effects import Effect, Effects, Errors
from models.forecasting.holidays import Holidays
from models.forecasting.panel import hold_last
from models.forecasting.problem import prepare_series
from models.forecasting.steps import Spacing
from models.prediction.options import PredictOptions
from models.training.train import train
from tests.models.forecasting.series_cases import PLAIN, configure, fit, in_panel, types_of

LEAD, SHOCK, NOISE, STEPS = 2, 0.1, 0.02, 500


def led(seed: int = 0) -> Columns:
    """log y_t = log y_{t−1} + SHOCK · z_{t−2} + NOISE · e_t: z tells two steps ahead."""
    random = np.random.default_rng(seed)
    z = random.normal(size=STEPS)
    change = SHOCK * np.concatenate([np.zeros(LEAD), z[:-LEAD]]) + NOISE * random.normal(size=STEPS)
    return {"time": np.arange(float(STEPS)), "y": 100 * np.exp(change.cumsum()), "z": z}


def options_of(training: Training | None = None, features: Any = None, **forecast: Any) -> Any:
    """Three steps of logarithms, read four at a time."""
    return {
        "forecast": replace(PLAIN, horizon=3, transform="log", **forecast),
        "features": features,
        "network": RecurrentConfig(kind="rnn", hidden=(8,)),
        "training": training or Training(epochs=1),
    }


def test_values_are_held_from_the_last_known_step_on_and_marked() -> None:
    values = torch.arange(10.0).unsqueeze(1)
    positions, last = torch.tensor([[2, 3, 4], [5, 6, 7]]), torch.tensor([4, 5])
    found = hold_last(values, positions, last)
    assert found[..., 0].tolist() == [[2, 3, 4], [5, 5, 5]]
    assert found[..., 1].tolist() == [[0, 0, 0], [0, 1, 1]]


def test_a_covariate_of_the_past_tells_as_far_ahead_as_it_leads() -> None:
    """The deviation of log y_h: NOISE · √h while z is known, and from step 3 on one SHOCK more."""
    columns = led()
    once = Training(epochs=80, learning_rate=0.03, refit=False, calibration_fraction=0.0)
    model = fit(columns, **options_of(once, past=("z",)))
    assert model.future_inputs == ()
    origins, ratios, errors = range(450, 497, 2), [], []
    for origin in origins:
        past = {name: values[:origin] for name, values in columns.items()}
        paths = model.predict(past, PredictOptions(return_draws=True)).draws
        logs, last = np.log(paths), np.log(columns["y"][origin - 1])
        known = last + SHOCK * columns["z"][origin - LEAD : origin].cumsum()
        ratios.append(logs.std(0))
        errors.append(np.abs(logs.mean(0)[:LEAD] - known))
    best = NOISE * np.sqrt([1, 2, 3 + (SHOCK / NOISE) ** 2])
    found = np.median(ratios, axis=0) / best
    assert (found < [2.5, 2.5, 1.4]).all()
    assert (found > 0.7).all()
    assert np.median(errors) < 0.3 * SHOCK  # without z: more than half of SHOCK


def panel(count: int = 12, steps: int = 30) -> Columns:
    random, shops, shape = np.random.default_rng(0), range(count), (count, steps)
    each = {
        "region": ["north" if i % 2 else "south" for i in shops],
        "name": [f"name {i}" for i in shops],
        "note": [f"a note on {i}" for i in shops],
        "size": random.normal(size=count),
    }
    known = {
        name: np.repeat(np.array(values, None if name == "size" else object), steps)
        for name, values in each.items()
    }
    found = in_panel(
        [f"shop {i}" for i in shops],
        y=np.exp(random.normal(size=shape)),
        z=random.normal(size=shape),
        open=np.where(np.arange(count * steps) == 7, 0.0, 1.0).reshape(shape),
    )
    return found | known


def test_attributes_that_never_change_within_a_series_are_found_and_read() -> None:
    """Not those of one series each, nor texts, nor what changes once."""
    config = configure(panel(), **options_of(key="shop"))
    assert [f.name for f in config.features or ()] == ["region", "size"]
    assert config.forecast.static == ("region", "size")
    few = {name: values[: 9 * 30] for name, values in panel().items()}
    assert configure(few, **options_of(key="shop")).features is None
    assert configure(panel(), **options_of(key="shop", static=())).features is None


def test_given_features_are_static_known_ahead_or_of_the_past() -> None:
    columns = panel()
    given = tuple(
        FeatureConfig(name=name, type=kind)  # type: ignore[arg-type]
        for name, kind in {"z": "number", "region": "category", "open": "number"}.items()
    )
    config = configure(columns, **options_of(key="shop", features=given, past=("z",)))
    assert [f.name for f in config.features or ()] == ["region", "open", "z"]
    assert config.forecast.static == ("region",)
    model = prepare_series(columns, types_of(columns), config).model
    assert [one.name for one in model.future_inputs] == ["open"]
    inputs = {one.name for one in model.inputs}
    assert inputs == {"time", "y", "shop", "region", "open", "z"}


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


EFFECT_STEPS, RUNS = 150, 12

Array = Float64[np.ndarray, "..."]


def errors_of(kind: str, random: np.random.Generator) -> Array:
    """Errors of a regression, whose one-step noise has deviation 1."""
    noise = random.normal(size=EFFECT_STEPS)
    if kind == "white noise":
        return noise
    if kind == "random walk":
        return noise.cumsum()
    if kind == "smoothing":  # a level that moves by 0.3 of each error
        return np.concatenate([[0.0], 0.3 * noise[:-1].cumsum()]) + noise
    return noise.cumsum() + 5 * np.sin(2 * np.pi * np.arange(EFFECT_STEPS) / 12)


def simulated(kind: str, seed: int, effects: list[float]) -> tuple[Tensor, Tensor]:
    """Values, and regressors of their steps: [1, STEPS] and [1, STEPS, effects]."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(EFFECT_STEPS, len(effects)))
    values = x @ np.array(effects) + errors_of(kind, random)
    return torch.from_numpy(values).unsqueeze(0), torch.from_numpy(x).unsqueeze(0)


def impulse(effect: Effects, values: Tensor, x: Tensor) -> Effect:
    """The effects ahead of a unit of each regressor in turn, after a history."""
    ahead = torch.eye(x.shape[2], dtype=torch.float64).expand(len(x), -1, -1)
    return effect.of(values, torch.cat([x, ahead], 1))


@pytest.mark.parametrize("kind", ["white noise", "season"])
def test_an_effect_is_recovered_within_its_standard_error(kind: str) -> None:
    """2 per unit. The least error is 1 / √150; of white noise, whose changes are read, 1.4 times.

    The deviation of 12 errors is itself uncertain by a fifth.
    """
    season = 12 if kind == "season" else 1
    found = []
    for seed in range(RUNS):
        values, x = simulated(kind, seed, [2.0])
        effects = Effects.fit(values, x, season)
        found.append(float(impulse(effects, values, x).ahead[0, 0]))
    least = 1 / EFFECT_STEPS**0.5
    assert np.std(found) < 2 * least
    assert abs(np.mean(found) - 2) < 4 * 1.4 * least / RUNS**0.5


def test_given_the_errors_it_is_the_posterior_of_a_regression() -> None:
    """Without lags: of changes on changes, with the priors of β ÷ σ and of the drift."""
    values, x = simulated("random walk", 0, [1.0, -0.5])
    widths = np.array([0.7, 2.0])
    found = impulse(Effects(Errors(()), tuple(widths.tolist())), values, x)
    w, dx = np.diff(values[0].numpy()), np.diff(x[0].numpy(), axis=0)
    unit = w.std()
    terms = np.column_stack([np.ones(EFFECT_STEPS - 1), dx])
    inverse = np.linalg.inv(terms.T @ terms + np.diag(np.array([0.3, *widths]) ** -2.0))
    beta = inverse @ terms.T @ w
    np.testing.assert_allclose(found.ahead[0].numpy(), beta[1:], rtol=1e-6)
    np.testing.assert_allclose(found.past[0].numpy(), x[0].numpy() @ beta[1:], rtol=1e-6)
    root = found.spread[0].numpy() / unit  # ahead − what the last step leads to expect
    from_last = np.eye(2) - x[0, -1].numpy() - np.arange(1, 3)[:, None] * expected(terms)
    np.testing.assert_allclose(root @ root.T, from_last @ inverse[1:, 1:] @ from_last.T, rtol=1e-6)


def expected(terms: Array) -> Array:
    """The mean change of each regressor, with the prior of a drift."""
    return terms[:, 1:].sum(0) / (len(terms) + 0.3**-2.0)


def test_it_agrees_with_regression_with_arima_errors() -> None:
    sarimax = pytest.importorskip("statsmodels.tsa.statespace.sarimax")
    values, x = simulated("smoothing", 1, [1.0, -2.0])
    effects = Effects.fit(values, x, 1)
    fit = sarimax.SARIMAX(values[0].numpy(), x[0].numpy(), order=(0, 1, 1)).fit(disp=0)
    theirs, errors = fit.params[:2], fit.bse[:2]
    assert (np.abs(impulse(effects, values, x).ahead[0].numpy() - theirs) < 0.7 * errors).all()


def test_noise_has_hardly_any_effect() -> None:
    """Eight regressors of noise: least squares has an error of 1 / √150 for each line alone."""
    sizes = []
    for seed in range(RUNS):
        values, x = simulated("smoothing", seed, [0.0] * 8)
        effects = Effects.fit(values, x, 1)
        found = 0.0 if effects is None else impulse(effects, values, x).ahead.square().mean()
        sizes.append(float(found))
    assert np.mean(sizes) ** 0.5 < 1 / EFFECT_STEPS**0.5


def test_a_curved_effect_is_found() -> None:
    """z² lifts by half of it: one unit of z to either side by as much."""
    values, x = simulated("smoothing", 5, [0.0])
    values = values + 0.5 * x.squeeze(-1).square()
    effects = Effects.fit(values, x, 1)
    assert effects.curved == (0,)
    ahead = torch.tensor([[[-2.0], [0.0], [2.0]]], dtype=torch.float64)
    found = effects.of(values, torch.cat([x, ahead], 1)).ahead[0]
    np.testing.assert_allclose((found - found[1])[[0, 2]], 2.0, atol=0.5)


EPOCH = dt.date(1970, 1, 1)


def dates(name: str, year: int) -> set[str]:
    found = calendars.calendar(name, year, year)
    return {str(EPOCH + dt.timedelta(days=day)) for day in found.days}


def test_holidays_are_those_of_the_law() -> None:
    """Germany's nine in 2025; Bavaria has three more everywhere (BayFTG, article 1)."""
    germany = {"01-01", "04-18", "04-21", "05-01", "05-29", "06-09", "10-03", "12-25", "12-26"}
    assert dates("DE", 2025) == {f"2025-{day}" for day in germany}
    bavaria = germany | {"01-06", "06-19", "11-01"}
    assert dates("DE-BY", 2025) == {f"2025-{day}" for day in bavaria}
    assert {"2024-07-04", "2024-11-28"} <= dates("US", 2024)  # the fourth Thursday of November
