"""Series with holes, their training sets, and many of them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    FeatureConfig,
    ForecastConfig,
    MAPConfig,
    MLPConfig,
    TrainingConfig,
)
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import InvalidInput
from models.features.columns import Columns
from models.forecasting.model import Forecaster
from models.forecasting.problem import prepare_series
from models.forecasting.steps import Spacing
from models.forecasting.windows import fill, windows
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import (
    PLAIN,
    QUICK,
    configure,
    fit,
    months,
    sales,
    types_of,
)


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


STEPS, HORIZON = 120, 2
OPTIONS: dict[str, Any] = {
    "forecast": PLAIN,
    "training": TrainingConfig(epochs=3, learning_rate=0.02),
    "method": DropoutConfig(kind="mc_dropout"),
}


def walk(steps: int = STEPS) -> Columns:
    values = np.random.default_rng(0).normal(size=steps).cumsum()
    return {"time": np.arange(float(steps)), "y": values}


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit(walk(), **OPTIONS)


def test_windows_and_forecasts_have_the_steps_of_their_set_alone() -> None:
    """72 steps to learn from, 12 that choose the epoch, 24 that calibrate and 12 that are scored.

    The walk's windows are identified by their targets, which all differ.
    """
    problem = prepare_series(walk(), types_of(walk()), configure(walk(), **OPTIONS))
    counts = [len(rows) for rows in (problem.rows, problem.stopping, problem.scores)]
    assert counts == [72 - 5, 12, 12]
    whole = problem.refit()
    assert len(whole.rows) == 108 - 5
    assert [origin.first for origin in problem.calibrating] == list(range(84, 107))
    scored = whole.model.held_out_origins(walk())
    assert [origin.first for origin in scored] == list(range(108, 119))


@pytest.mark.parametrize("first", [72, 84])
def test_what_comes_later_does_not_change_the_first_fit(first: int) -> None:
    """Neither its windows, nor their scales; from 84 on not those that choose the epoch either."""
    columns, config = walk(), configure(walk(), **OPTIONS)
    changed = {**columns, "y": np.where(np.arange(STEPS) < first, columns["y"], 9.0)}
    one, two = (prepare_series(table, types_of(table), config) for table in (columns, changed))
    assert torch.equal(one.rows.inputs, two.rows.inputs)
    assert torch.equal(one.rows.targets, two.rows.targets)
    assert torch.equal(one.stopping.targets, two.stopping.targets) == (first == 84)


@pytest.mark.parametrize(
    "method",
    [
        BBBConfig(),
        DropoutConfig(kind="mc_dropout"),
        EnsembleConfig(kind="ensemble", members=2),
    ],
)
def test_the_scored_end_changes_neither_forecasts_nor_calibration(method: Any) -> None:
    """So its scores are those of a future: an end of another process has other scores alone."""
    columns = walk()
    changed = {**columns, "y": columns["y"] + np.where(np.arange(STEPS) < 108, 0, 50.0)}
    one, two = (fit(table, **OPTIONS | {"method": method}) for table in (columns, changed))
    history = {name: values[:108] for name, values in columns.items()}
    first, second = (model.predict(history, PredictOptions(samples=20)) for model in (one, two))
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.intervals[1].upper, second.intervals[1].upper)
    assert one.variant(0.0).calibration == two.variant(0.0).calibration is not None
    assert one.variant(0.0).metrics != two.variant(0.0).metrics


def _calibration(model: Forecaster) -> PathCalibration:
    return model.variant(0.0).calibration


def test_a_forecast_has_conformal_intervals_and_raw_scores(forecaster: Forecaster) -> None:
    metrics = forecaster.variant(0.0).metrics
    assert set(metrics["conformal_coverage"]) == {"0.5", "0.8", "0.9", "0.95"}
    assert metrics["uncalibrated"]["log_likelihood"] != metrics["log_likelihood"]
    # 11 forecasts of two steps: ρ² is 1/2 between the steps of one, and between neighbours' that
    # share a step; the sum of squares is 22 + 2 · 11/2 + 2 · 10 · (1/4 + 1/2)
    assert metrics["independent_errors"] == pytest.approx(22**2 / (22 + 11 + 15))
    answer = forecaster.predict(walk(), PredictOptions(samples=50, intervals=(0.5, 0.9)))
    assert [one.kind for one in answer.intervals] == ["credible"] * 2 + ["conformal"] * 2
    lower, upper = answer.intervals[3].lower, answer.intervals[3].upper
    ratio = (upper - lower) / np.sqrt(answer.variance["total"])
    # the deviation is that of a Gaussian's quantiles, which the total variance is close to
    half = _calibration(forecaster).half_widths(0.9, HORIZON).numpy()
    np.testing.assert_allclose(ratio, 2 * half, rtol=0.1)


def test_a_short_series_is_not_calibrated_and_says_so() -> None:
    """40 steps: 8 of them hold forecasts worth 7 independent errors at most."""
    model = fit(walk(40), **OPTIONS)
    assert model.config.training.calibration_fraction == 0
    assert model.variant(0.0).calibration is None
    assert "not calibrated" in model.notes[0]


ASKED = PredictOptions(samples=20, horizon=3, exceeds=(100.0,))


def _shops(names: tuple[str, ...] = ("north", "south"), count: int = 96) -> dict[str, np.ndarray]:
    """Shops with sales of one scale each; a price of 1 or 2 that halves sales."""
    random = np.random.default_rng(5)
    tables = []
    for i, shop in enumerate(names):
        table, price = sales(count, seed=i), random.integers(1, 3, count).astype(float)
        of_shop = {"price": price, "shop": np.array([shop] * count, object)}
        tables.append({**table, "sales": table["sales"] / price / (1 + i), **of_shop})
    return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}


def _one(columns: Columns, shop: str) -> Columns:
    return {name: values[columns["shop"] == shop] for name, values in columns.items()}


@pytest.fixture(scope="module")
def plain() -> Forecaster:
    """Knows no covariates."""
    columns = _shops()
    del columns["price"]
    return fit(columns, forecast=ForecastConfig(key="shop"), training=replace(QUICK, epochs=2))


@pytest.fixture(scope="module")
def priced() -> Forecaster:
    return fit(
        _shops(),
        features=(FeatureConfig(name="price", type="number"),),
        forecast=ForecastConfig(key="shop", context=12),
        training=replace(QUICK, epochs=40),
        method=MAPConfig(kind="map"),
        network=MLPConfig(hidden=(8,)),
    )


@pytest.mark.parametrize("is_sorted_by_shop", [True, False])
def test_each_series_is_forecast_as_if_alone(plain: Forecaster, is_sorted_by_shop: bool) -> None:
    columns = _shops(("south", "north", "new"))
    if not is_sorted_by_shop:
        order = np.argsort(columns["month"], kind="stable")
        columns = {name: values[order] for name, values in columns.items()}
    options = replace(ASKED, return_draws=True)
    together = plain.predict(columns, options)
    assert together["series"] == ["south"] * 3 + ["north"] * 3 + ["new"] * 3
    assert together["step"].tolist() == [1, 2, 3] * 3
    for i, shop in enumerate(("south", "north", "new")):
        rows = slice(3 * i, 3 * i + 3)
        alone = plain.predict(_one(columns, shop), options)
        assert (together["time"][rows] == alone["time"]).all()
        np.testing.assert_allclose(together.mean[rows], alone.mean, rtol=1e-4)
        np.testing.assert_allclose(together.draws[:, rows], alone.draws, rtol=1e-4)
        for name, values in alone.variance.items():
            np.testing.assert_allclose(together.variance[name][rows], values, rtol=1e-3)
        assert together.out_of_distribution[rows].tolist() == alone.out_of_distribution.tolist()


def test_series_may_end_at_different_times_and_are_flagged_apart(plain: Forecaster) -> None:
    columns = _shops()
    early = np.flatnonzero(columns["shop"] == "south")[-10:]
    columns = {name: np.delete(values, early) for name, values in columns.items()}
    columns["sales"][90] *= 1e6
    answer = plain.predict(columns, ASKED)
    starts = answer["time"].astype("datetime64[M]")[[0, 3]].astype(str).tolist()
    assert starts == ["2023-01", "2022-03"]
    each = answer["reasons"]
    flagged = [{one.code for one in row} == {"out_of_range"} for row in each]
    assert flagged == [True] * 3 + [False] * 3


def test_rows_after_the_last_target_tell_the_covariates_ahead(priced: Forecaster) -> None:
    """The same as `future`, for one series; and each series has its own."""
    columns, random = _shops(), np.random.default_rng(0)
    ahead = {shop: random.integers(1, 3, 3).astype(float) for shop in ("north", "south")}
    tables, alone = [], []
    for shop, prices in ahead.items():
        one = _one(columns, shop)
        alone.append(priced.predict(one, ASKED, {"price": prices}).mean)
        steps = {
            "month": months(99)[-3:],
            "sales": np.full(3, np.nan),
            "price": prices,
            "shop": np.array([shop] * 3, object),
        }
        tables.append({name: np.concatenate([one[name], steps[name]]) for name in one})
    together = {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}
    np.testing.assert_allclose(
        priced.predict(together, ASKED).mean, np.concatenate(alone), rtol=1e-4
    )
    with pytest.raises(InvalidInput, match="'north'") as caught:
        priced.predict(together, replace(ASKED, horizon=4))
    assert caught.value.path == "/inputs"


def _set(name: str, row: int, value: Any) -> Columns:
    columns = _shops()
    columns[name][row] = value
    return columns


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (_set("shop", 7, None), "row 7"),
        (_set("month", 150, months(1)[0]), "'south': row 150"),
        (_set("month", 150, np.datetime64("NaT")), "'south': row 150"),
        (_set("sales", 185, -1.0), "'south': 'sales' is -1"),
        ({k: v[:100] for k, v in _shops().items()}, "'south'.* 4 rows"),
    ],
)
def test_what_is_wrong_names_the_series(plain: Forecaster, columns: Columns, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        plain.predict(columns, ASKED)
    assert caught.value.path == "/inputs"
