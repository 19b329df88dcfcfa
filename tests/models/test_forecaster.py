"""From a table of series to a stored forecaster that answers, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    BBBConfig,
    DropoutConfig,
    EnsembleConfig,
    FeatureConfig,
    ForecastConfig,
    LaplaceConfig,
    MAPConfig,
    MLPConfig,
    ModelConfig,
    RecurrentConfig,
    SplitBy,
    TrainingConfig,
)
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import ColumnProfile, Columns
from models.forecasting import recipe
from models.forecasting.model import Forecaster
from models.forecasting.panels.cutting import CutRows
from models.forecasting.preparation import prepare_series
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

TYPES = {
    "month": "datetime",
    "sales": "number",
    "price": "number",
    "shop": "category",
    "day": "number",
    "note": "text",
}
SMALL = RecurrentConfig(kind="rnn", hidden=(6,))
QUICK = TrainingConfig(epochs=20, learning_rate=0.02, patience=30, fine_tune_epochs=2)


def months(count: int) -> np.ndarray:
    return (np.datetime64("2015-01", "M") + np.arange(count)).astype("datetime64[us]")


def sales(count: int = 84, seed: int = 0) -> dict[str, np.ndarray]:
    """Growing by 12 % a year, with a season and noise that grow along."""
    t, random = np.arange(count), np.random.default_rng(seed)
    trend = 100 * np.exp(0.01 * t + 0.3 * np.sin(2 * np.pi * t / 12))
    return {"month": months(count), "sales": trend * np.exp(0.03 * random.normal(size=count))}


def configure(columns: Columns, **options: Any) -> ModelConfig:
    profiles = [ColumnProfile(name=name, type=TYPES[name], min=0.0, max=1.0) for name in columns]
    wanted = {"target": "sales", "task": "forecasting", "network": SMALL, "training": QUICK}
    config = ModelConfig(**{**wanted, "pruning": (), **options})
    rows = len(columns["month"])
    return resolve(config, profiles, rows, lambda names: {name: columns[name] for name in names})


def fit(columns: Columns, **options: Any) -> Forecaster:
    """A forecaster without classical members, which tests/models/forecasting has."""
    if not isinstance(options.get("method"), BBBConfig | None):
        options.setdefault("pruning", None)
    alone = replace(options.get("forecast") or ForecastConfig(), classics=False)
    options["forecast"] = alone
    model = train(columns, TYPES, configure(columns, **options))
    assert isinstance(model, Forecaster)
    return model


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit(sales(), pruning=(0.5,), training=replace(QUICK, epochs=60))


def test_the_recipe_reads_season_and_horizon_off_the_series() -> None:
    config = configure(sales(), network=MLPConfig())
    assert config.forecast == ForecastConfig(
        time="month", horizon=12, context=12, season=12, transform="log"
    )
    assert config.network == RecurrentConfig(kind="gru", hidden=(16,))
    assert config.features is None
    assert (config.likelihood, config.task) == ("heteroscedastic", "forecasting")


def test_a_series_without_a_season_or_with_zeros_is_taken_as_that() -> None:
    walk = np.random.default_rng(3).normal(size=200).cumsum()
    config = configure({"month": months(200), "sales": walk})
    assert config.forecast is not None
    assert (config.forecast.season, config.forecast.transform) == (1, "none")


@pytest.mark.parametrize(
    ("options", "message", "path"),
    [
        (
            {"forecast": ForecastConfig(time="shop")},
            "of type category; a time is",
            "/forecast/time",
        ),
        (
            {"forecast": ForecastConfig(key="month")},
            "of type datetime; series are",
            "/forecast/key",
        ),
        ({"weight": "price"}, "have no weights", "/weight"),
        ({"forecast": ForecastConfig(context=80)}, "windows of 92", "/dataset"),
        (
            {"training": TrainingConfig(calibration_fraction=0.1)},
            "must be worth 9 independent",
            "/training/calibration_fraction",
        ),
        (
            {"training": TrainingConfig(stopping_fraction=0.5)},
            "stopping_fraction 0.5 leaves 6 windows",
            "/training/stopping_fraction",
        ),
        (
            {"training": TrainingConfig(refit=True, stopping_fraction=0.0)},
            "would be the same fit",
            "/training/refit",
        ),
        (
            {"training": TrainingConfig(split=SplitBy(by="shop"))},
            "the end of a series is held",
            "/training/split",
        ),
        (
            {"features": (FeatureConfig(name="sales", type="number"),)},
            "is the target",
            "/features/0",
        ),
        (
            {"features": (FeatureConfig(name="price", type="number"),) * 2},
            "given twice",
            "/features/1",
        ),
        (
            {"features": (FeatureConfig(name="shop", type="number"),)},
            "cannot be read as number",
            "/features/0/type",
        ),
        (
            {"features": (FeatureConfig(name="note", type="text"),)},
            "is text",
            "/features/0",
        ),
        (
            {
                "features": (FeatureConfig(name="day", type="category"),),
                "forecast": ForecastConfig(time="day"),
            },
            "time or key and is read as number",
            "/features/0/type",
        ),
        ({"task": "regression", "forecast": ForecastConfig()}, "has no series", "/forecast"),
    ],
)
def test_what_cannot_work_is_refused_by_name(
    options: dict[str, Any], message: str, path: str
) -> None:
    names = np.array(["a"] * 84, object)
    numbers = {"price": np.ones(84), "day": np.arange(84.0)}
    columns = {**sales(), **numbers, "shop": names, "note": names}
    with pytest.raises(InvalidData, match=message) as caught:
        configure(columns, **options)
    assert caught.value.path == path


def _plan(columns: Columns, **lengths: int) -> ModelConfig:
    forecast = ForecastConfig(time="day", **lengths, key="shop" if "shop" in columns else None)
    profiles = [ColumnProfile(name=name, type=TYPES[name]) for name in columns]
    config = ModelConfig(target="sales", forecast=forecast)
    return resolve(config, profiles, len(columns["day"]), lambda names: columns)


def test_more_series_than_a_model_learns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "MAX_SERIES", 1_000)
    shops = np.arange(1_001).repeat(3).astype(str).astype(object)
    days = np.tile(np.arange(3.0), 1_001)
    with pytest.raises(InvalidData, match="1001 series; a model learns up to 1000") as caught:
        _plan({"day": days, "sales": days, "shop": shops})
    assert caught.value.path == "/forecast/key"


def test_windows_that_would_fill_the_memory_are_cut_from_the_series() -> None:
    """70,000 windows of 2,000 steps took more than 1 GiB."""
    long = np.arange(80_000.0)
    columns = {"day": long, "sales": long % 7}
    config = _plan(columns, context=1_000, season=1_000, horizon=1)
    problem = prepare_series(columns, TYPES, config)
    assert isinstance(problem.rows, CutRows)
    assert len(problem.rows) > 50_000
    assert problem.scores.inputs.nbytes < 2**28


def test_one_row_at_a_time_and_the_time_is_named() -> None:
    columns = sales()
    columns["month"][5] = columns["month"][4]
    with pytest.raises(InvalidData, match=r"two rows are of 2015-05.*forecast\.key"):
        configure(columns)
    two = {**sales(), "price": months(84)}
    profiles = [ColumnProfile(name=n, type="datetime") for n in ("month", "price")]
    profiles.append(ColumnProfile(name="sales", type="number"))
    config = ModelConfig(target="sales", task="forecasting")
    with pytest.raises(InvalidData, match="there are month, price; name the column"):
        resolve(config, profiles, 84, lambda names: {name: two[name] for name in names})


def test_the_end_is_held_out_and_training_never_sees_it() -> None:
    columns = sales()
    config = configure(columns)
    changed = {**columns, "sales": columns["sales"].copy()}
    changed["sales"][-12:] *= 7
    first, second = (prepare_series(table, TYPES, config) for table in (columns, changed))
    whole, other = first.refit(), second.refit()
    assert first.stopping is not None
    assert (len(first.rows), len(first.stopping)) == (84 - 24 - 12 - 8, 8)
    assert (len(whole.rows), len(whole.scores)) == (84 - 24 - 12, 12)
    for one, two in ((first, second), (whole, other)):
        assert isinstance(one.model, Forecaster)
        assert isinstance(two.model, Forecaster)
        assert one.model.frame == two.model.frame
        assert torch.equal(one.rows.inputs, two.rows.inputs)
        assert torch.equal(one.rows.targets, two.rows.targets)
    assert not torch.equal(whole.scores.targets, other.scores.targets)


def test_the_recipe_does_not_look_at_the_held_out_end() -> None:
    """A flat end hides the season of what is before, and a jump of it spans four decades."""
    columns = sales()
    config = configure(columns, training=replace(QUICK, validation_fraction=0.5))
    quiet, loud = columns["sales"].copy(), columns["sales"].copy()
    quiet[-42:], loud[-42:] = np.arange(42) % 2 * 1e3 + 1, 1e7
    for end in (quiet, loud):
        changed = {**columns, "sales": end}
        again = configure(changed, training=replace(QUICK, validation_fraction=0.5))
        assert again.forecast == config.forecast


def test_the_order_of_rows_does_not_matter() -> None:
    columns = sales()
    order = np.random.default_rng(0).permutation(84)
    shuffled = {name: values[order] for name, values in columns.items()}
    first, second = (prepare_series(t, TYPES, configure(t)) for t in (columns, shuffled))
    assert torch.equal(first.rows.inputs, second.rows.inputs)


def test_a_forecast_is_better_than_the_seasons_before(forecaster: Forecaster) -> None:
    """12 % growth a year and 3 % noise: repeating the last season is off by the growth."""
    metrics = forecaster.variant(0.0).metrics
    naive = metrics["baselines"]["seasonal_naive"]
    assert metrics["crps"] < 0.8 * naive["crps"]
    assert metrics["mase"] < 0.8 < naive["mase"]
    assert (metrics["origins"], metrics["horizon"], metrics["rows"]) == (1, 12, 12)


def test_paths_that_run_away_leave_a_model_that_says_so(
    forecaster: Forecaster, tmp_path: Path
) -> None:
    """Changes of e^10,000 a year, beyond float64."""
    wild = replace(forecaster.frame, change=replace(forecaster.frame.change, mean=1e4))
    model = replace(forecaster, frame=wild)
    metrics = model.score_origins(model.held_out_origins(sales()), 0.0, 10)
    assert metrics["crps"] is metrics["rmse"] is None
    assert metrics["baselines"]["seasonal_naive"]["crps"] > 0
    assert model.notes_on({0.0: metrics, 0.5: forecaster.variant(0.5).metrics}) == (
        "prune 0: sample paths diverge; metrics that are not finite are null",
    )
    scored = {0.0: replace(model.variant(0.0), metrics=metrics)}
    write_model(model.with_variants(scored), tmp_path / "model")
    answer = model.predict(sales(), PredictOptions(samples=10))
    assert not np.isfinite(answer.mean).all()


def test_an_answer_has_steps_for_rows(forecaster: Forecaster) -> None:
    options = PredictOptions(samples=40, intervals=(0.5, 0.9), return_draws=True, horizon=7)
    answer = forecaster.predict(sales(), options)
    assert answer.times is not None
    assert answer.times.astype("datetime64[M]").astype(str).tolist()[:2] == ["2022-01", "2022-02"]
    assert answer.draws is not None
    assert answer.draws.shape == (40 * 10, 7)
    assert (answer.samples, answer.paths) == (40, 10)
    total = answer.variance["aleatoric"] + answer.variance["epistemic"]
    np.testing.assert_allclose(answer.variance["total"], total)
    # 400 paths: their mean is within some standard errors of that of conditional means
    error = np.abs(answer.draws.mean(0) - answer.mean) / np.sqrt(total / 400)
    assert (error < 5).all()
    half, most = answer.intervals
    assert (most.lower < half.lower).all()
    assert (half.lower < answer.mean).all()
    assert (answer.mean < half.upper).all()


def test_only_the_end_of_the_history_is_read(forecaster: Forecaster) -> None:
    options, whole = PredictOptions(samples=10), sales()
    end = {name: values[-24:] for name, values in whole.items()}
    np.testing.assert_array_equal(
        forecaster.predict(whole, options).mean, forecaster.predict(end, options).mean
    )


@pytest.mark.parametrize("transform", ["log", "none"])
def test_a_thousandfold_series_has_a_thousandfold_forecast(transform: str) -> None:
    forecast = ForecastConfig(transform=transform)  # type: ignore[arg-type]
    model = fit(sales(), forecast=forecast, network=MLPConfig(hidden=(4,)))
    columns, options = sales(), PredictOptions(samples=20)
    larger = {**columns, "sales": 1000 * columns["sales"]}
    one, thousand = model.predict(columns, options), model.predict(larger, options)
    np.testing.assert_allclose(thousand.mean, 1000 * one.mean, rtol=1e-4)
    np.testing.assert_allclose(
        thousand.intervals[0].upper, 1000 * one.intervals[0].upper, rtol=1e-4
    )


def test_a_stored_forecaster_answers_the_same(forecaster: Forecaster, tmp_path: Path) -> None:
    write_model(forecaster, tmp_path / "model")
    again = read_model(tmp_path / "model")
    assert isinstance(again, Forecaster)
    for prune in (0.0, 0.5):
        options = PredictOptions(samples=20, prune=prune)
        first, second = forecaster.predict(sales(), options), again.predict(sales(), options)
        np.testing.assert_array_equal(first.mean, second.mean)
    described = again.description
    assert described["task"] == "forecasting"
    assert described["forecast"]["horizon"] == 12
    assert described["variants"] == write_model(again, tmp_path / "b").description["variants"]


@pytest.mark.parametrize(
    ("method", "samples", "paths"),
    [
        (MAPConfig(kind="map"), 1, 1000),
        (EnsembleConfig(kind="ensemble", members=3), 3, 334),
        (DropoutConfig(kind="mc_dropout"), 50, 10),
        (LaplaceConfig(kind="laplace"), 50, 10),
    ],
)
def test_every_method_forecasts(method: Any, samples: int, paths: int) -> None:
    model = fit(sales(), method=method)
    answer = model.predict(sales(), PredictOptions(samples=50))
    assert (answer.samples, answer.paths) == (samples, paths)
    assert np.isfinite(answer.mean).all()
    assert (answer.variance["aleatoric"] > 0).all()
    assert (answer.variance["epistemic"] == 0).all() == (samples == 1)


def _refuse(model: Forecaster, columns: Columns, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        model.predict(columns, PredictOptions(samples=2))
    assert caught.value.path == "/inputs"


def test_a_history_that_cannot_be_gone_on_from_is_refused(forecaster: Forecaster) -> None:
    columns = sales(30)
    _refuse(forecaster, sales(20), "has 20 rows; this model reads the last 24")
    reversed_ = {name: values[::-1] for name, values in columns.items()}
    _refuse(forecaster, reversed_, "row 1 is of 2017-05.*not after row 0")
    _refuse(forecaster, {"month": columns["month"]}, "missing columns: sales")
    late = {**columns, "month": columns["month"].copy()}
    late["month"][20:] += np.timedelta64(400 * 365, "D")
    _refuse(forecaster, late, "row 20 is not a whole number of steps .* a step is a month")
    wrong = {**columns, "sales": columns["sales"].copy()}
    wrong["sales"][25] = -1.0
    _refuse(forecaster, wrong, "'sales' is -1 in the last 24 steps.*logarithms")
    wrong["sales"][10:23] = np.nan
    _refuse(forecaster, wrong, "13 of the last 24 steps .* have no value")


def test_a_horizon_is_for_forecasts_and_rows_for_tables(forecaster: Forecaster) -> None:
    with pytest.raises(InvalidInput, match="no sampler 'moments'"):
        forecaster.predict(sales(), PredictOptions(sampler="moments"))
    with pytest.raises(InvalidInput, match="no conformal intervals"):
        forecaster.resolve(PredictOptions(interval_kinds=("conformal",)))
    with pytest.raises(InvalidInput, match="forecasts are not explained"):
        forecaster.resolve(PredictOptions(explain=True))
    assert forecaster.background is None
    assert forecaster.resolve(PredictOptions()).horizon == 12
    far = {"month": months(30) + np.timedelta64(2_900_000, "D"), "sales": sales(30)["sales"]}
    with pytest.raises(InvalidInput, match="after the year 9999"):
        forecaster.predict(far, PredictOptions(samples=2, horizon=1000))


def _shops() -> dict[str, np.ndarray]:
    """Two shops, the second a tenth of the first; a price of 1 or 2 that halves sales."""
    random = np.random.default_rng(5)
    tables = []
    for shop, scale in (("north", 1.0), ("south", 0.1)):
        table, price = sales(96, seed=1), random.integers(1, 3, 96).astype(float)
        names = np.array([shop] * 96, object)
        tables.append(
            {**table, "sales": scale * table["sales"] / price, "price": price, "shop": names}
        )
    return {name: np.concatenate([t[name] for t in tables]) for name in tables[0]}


def test_several_series_and_what_is_known_ahead() -> None:
    columns = _shops()
    model = fit(
        columns,
        features=(FeatureConfig(name="price", type="number"),),
        forecast=ForecastConfig(key="shop", context=12),
        training=replace(QUICK, epochs=120),
        method=MAPConfig(kind="map"),
        network=MLPConfig(hidden=(8,)),
    )
    south = {name: values[96:] for name, values in columns.items()}
    assert [column.name for column in model.inputs] == ["month", "sales", "price", "shop"]
    assert [column.name for column in model.future_inputs] == ["price"]
    options = PredictOptions(horizon=2)
    means = [
        model.predict(south, options, {"price": np.array([price, 1.0])}).mean[0]
        for price in (1.0, 2.0)
    ]
    assert 0.3 < means[1] / means[0] < 0.8  # learnt: half
    with pytest.raises(InvalidInput, match="needs price of the 2 steps ahead"):
        model.predict(south, options)
    with pytest.raises(InvalidInput, match="'price' has 1 values for a horizon of 2"):
        model.predict(south, options, {"price": np.array([1.0])})


def test_evaluation_scores_every_origin_of_a_newer_series(forecaster: Forecaster) -> None:
    metrics = forecaster.evaluate(sales(60, seed=9), samples=10)
    assert metrics["origins"] == 60 - 24 - 12 + 1
    assert metrics["rows"] == 12 * metrics["origins"]
    with pytest.raises(InvalidData, match="24 steps to read and 12 more"):
        forecaster.evaluate(sales(30))
    with pytest.raises(InvalidData, match="logarithms; 0 has none"):
        forecaster.evaluate({"month": months(60), "sales": np.zeros(60)})


def test_steps_may_be_numbers_and_series_too_short_to_learn_from() -> None:
    """A walk without a calendar; a second series of one step gives no window, and no error."""
    walk = 50 + np.random.default_rng(4).normal(size=61).cumsum()
    columns = {
        "price": np.array([*range(60), 5.0]),
        "sales": walk - 40,
        "shop": np.array(["long"] * 60 + ["short"], object),
    }
    forecast = ForecastConfig(
        time="price", key="shop", horizon=3, context=1, season=1, transform="none"
    )
    profiles = [ColumnProfile(name=name, type=TYPES[name]) for name in columns]
    config = ModelConfig(
        target="sales",
        forecast=forecast,
        network=SMALL,
        training=QUICK,
        method=MAPConfig(kind="map"),
    )
    config = resolve(config, profiles, 61, lambda names: {name: columns[name] for name in names})
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    answer = model.predict({k: v[:60] for k, v in columns.items()}, PredictOptions())
    assert answer.times is not None
    assert answer.times.tolist() == [60.0, 61.0, 62.0]
    assert np.isfinite(answer.mean).all()


@pytest.mark.training
def test_an_absurd_value_in_the_history_is_flagged_and_named(tmp_path: Path) -> None:
    """Held-out steps are 12 % a year above the learned ones, which is no reason to flag."""
    columns = sales() | {"price": np.tile([1.0, 2.0], 42)}
    features = (FeatureConfig(name="price", type="number"),)
    config = configure(columns, features=features, forecast=ForecastConfig(time="month", horizon=3))
    write_model(train(columns, TYPES, config), tmp_path)
    model = read_model(tmp_path)
    assert isinstance(model, Forecaster)
    options, ahead = PredictOptions(samples=5), {"price": np.array([1.0, 2.0, 1.0])}

    def reasons(past: Columns, future: Columns) -> list[Any]:
        answer = model.predict(past, options, future)
        found = answer.answers["reasons"].document()  # type: ignore[attr-defined]
        assert [bool(one) for one in found] == answer.out_of_distribution.tolist()
        return [[one["column"] for one in row] for row in found]

    assert not any(row and row[0] for row in reasons(columns, ahead))
    absurd = columns | {"sales": np.append(columns["sales"][:-1], 1e6)}
    assert [row[0] for row in reasons(absurd, ahead)] == ["sales"] * 3
    assert [row[0] for row in reasons(columns, {"price": np.array([1.0, 90.0, 1.0])})] == [
        "price"
    ] * 3
    earlier = replace(model, seen=None).predict(absurd, options, ahead)
    assert "reasons" not in earlier.answers
