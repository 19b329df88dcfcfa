"""From a table of series to a stored forecaster that answers, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.artifact.files import read_model, write_model
from models.config import (
    DropoutConfig,
    EnsembleConfig,
    FeatureConfig,
    ForecastConfig,
    LaplaceConfig,
    MAPConfig,
    MLPConfig,
    RecurrentConfig,
    SplitBy,
    TrainingConfig,
)
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import QUICK, configure, fit, months, sales


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit(sales(), pruning=(0.5,), training=replace(QUICK, epochs=30))


def test_the_recipe_reads_season_horizon_and_scale_off_the_series() -> None:
    config = configure(sales(), network=MLPConfig())
    assert config.forecast == ForecastConfig(
        time="month", horizon=12, context=12, season=12, transform="log"
    )
    assert config.network == RecurrentConfig(kind="gru", hidden=(16,))
    walk = np.random.default_rng(3).normal(size=200).cumsum()
    of_walk = configure({"month": months(200), "sales": walk}).forecast
    assert (of_walk.season, of_walk.transform) == (1, "none")


def _feature(name: str, kind: str) -> dict[str, Any]:
    return {"features": (FeatureConfig(name=name, type=kind),)}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"forecast": ForecastConfig(time="shop")}, "/forecast/time"),
        ({"forecast": ForecastConfig(key="month")}, "/forecast/key"),
        ({"weight": "price"}, "/weight"),
        ({"forecast": ForecastConfig(context=80)}, "/dataset"),
        (
            {"training": TrainingConfig(calibration_fraction=0.1)},
            "/training/calibration_fraction",
        ),
        ({"training": TrainingConfig(stopping_fraction=0.5)}, "/training/stopping_fraction"),
        ({"training": TrainingConfig(refit=True, stopping_fraction=0.0)}, "/training/refit"),
        ({"training": TrainingConfig(split=SplitBy(by="shop"))}, "/training/split"),
        (_feature("sales", "number"), "/features/0"),
        (_feature("shop", "number"), "/features/0/type"),
        (_feature("note", "text"), "/features/0"),
        ({"task": "regression", "forecast": ForecastConfig()}, "/forecast"),
    ],
)
def test_what_cannot_work_is_refused_by_its_path(options: dict[str, Any], path: str) -> None:
    names = np.array(["a"] * 84, object)
    columns = {**sales(), "price": np.ones(84), "shop": names, "note": names}
    with pytest.raises(InvalidData) as caught:
        configure(columns, **options)
    assert caught.value.path == path


def test_a_forecast_is_better_than_the_seasons_before(forecaster: Forecaster) -> None:
    """12 % growth a year and 3 % noise: repeating the last season is off by the growth."""
    metrics = forecaster.variant(0.0).metrics
    naive = metrics["baselines"]["seasonal_naive"]
    assert metrics["crps"] < 0.8 * naive["crps"]
    assert metrics["mase"] < 0.8 < naive["mase"]
    assert (metrics["origins"], metrics["horizon"], metrics["rows"]) == (1, 12, 12)


def test_an_answer_has_steps_for_rows(forecaster: Forecaster) -> None:
    options = PredictOptions(samples=40, intervals=(0.5, 0.9), return_draws=True, horizon=7)
    answer = forecaster.predict(sales(), options)
    assert answer["time"].astype("datetime64[M]").astype(str).tolist()[:2] == ["2022-01", "2022-02"]
    assert answer.draws.shape == (40 * 10, 7)
    assert (answer.samples, answer.get("paths")) == (40, 10)
    total = answer.variance["aleatoric"] + answer.variance["epistemic"]
    np.testing.assert_allclose(answer.variance["total"], total)
    # 400 paths: their mean is within some standard errors of that of conditional means
    error = np.abs(answer.draws.mean(0) - answer.mean) / np.sqrt(total / 400)
    assert (error < 5).all()
    half, most = answer.intervals
    assert (most.lower < half.lower).all()
    assert (half.lower < answer.mean).all()
    assert (answer.mean < half.upper).all()
    end = {name: values[-24:] for name, values in sales().items()}  # no more is read
    np.testing.assert_array_equal(forecaster.predict(end, options).mean, answer.mean)


def test_a_stored_forecaster_answers_the_same(forecaster: Forecaster, tmp_path: Path) -> None:
    write_model(forecaster, tmp_path / "model")
    again = read_model(tmp_path / "model")
    for prune in (0.0, 0.5):
        options = PredictOptions(samples=20, prune=prune)
        first, second = forecaster.predict(sales(), options), again.predict(sales(), options)
        np.testing.assert_array_equal(first.mean, second.mean)
    assert again.description["forecast"]["horizon"] == 12


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
    model = fit(sales(), method=method, training=replace(QUICK, epochs=2))
    answer = model.predict(sales(), PredictOptions(samples=50))
    assert (answer.samples, answer.get("paths")) == (samples, paths)
    assert np.isfinite(answer.mean).all()
    assert (answer.variance["aleatoric"] > 0).all()
    assert (answer.variance["epistemic"] == 0).all() == (samples == 1)


def _refuse(model: Forecaster, columns: Columns, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        model.predict(columns, PredictOptions(samples=2))
    assert caught.value.path == "/inputs"


def test_a_history_that_cannot_be_gone_on_from_is_refused(forecaster: Forecaster) -> None:
    columns = sales(30)
    _refuse(forecaster, sales(20), "reads the last 24")
    _refuse(forecaster, {name: values[::-1] for name, values in columns.items()}, "row 1")
    _refuse(forecaster, {"month": columns["month"]}, "sales")
    late = {**columns, "month": columns["month"].copy()}
    late["month"][20:] += np.timedelta64(400 * 365, "D")
    _refuse(forecaster, late, "row 20")
    wrong = {**columns, "sales": columns["sales"].copy()}
    wrong["sales"][25] = -1.0
    _refuse(forecaster, wrong, "logarithms")
    wrong["sales"][10:23] = np.nan
    _refuse(forecaster, wrong, "13 of the last 24 steps")


def test_evaluation_scores_every_origin_of_a_newer_series(forecaster: Forecaster) -> None:
    metrics = forecaster.evaluate(sales(60, seed=9), samples=10)
    assert metrics["origins"] == 60 - 24 - 12 + 1
    assert metrics["rows"] == 12 * metrics["origins"]
    for too_short_or_zero in (sales(30), {"month": months(60), "sales": np.zeros(60)}):
        with pytest.raises(InvalidData):
            forecaster.evaluate(too_short_or_zero)


def test_steps_may_be_numbers_and_series_too_short_to_learn_from() -> None:
    """A walk without a calendar; a second series of one step gives no window, and no error."""
    walk = 50 + np.random.default_rng(4).normal(size=61).cumsum()
    shops = np.array(["long"] * 60 + ["short"], object)
    columns = {"day": np.array([*range(60), 5.0]), "sales": walk - 40, "shop": shops}
    forecast = ForecastConfig(
        time="day", key="shop", horizon=3, context=1, season=1, transform="none"
    )
    model = fit(columns, forecast=forecast, method=MAPConfig(kind="map"))
    answer = model.predict({k: v[:60] for k, v in columns.items()}, PredictOptions())
    assert answer["time"].tolist() == [60.0, 61.0, 62.0]
    assert np.isfinite(answer.mean).all()


def test_an_absurd_value_in_the_history_or_ahead_is_flagged_and_named(tmp_path: Path) -> None:
    """Held-out steps are 12 % a year above the learned ones, which is no reason to flag."""
    columns = sales() | {"price": np.tile([1.0, 2.0], 42)}
    forecast = ForecastConfig(time="month", horizon=3)
    write_model(fit(columns, **_feature("price", "number"), forecast=forecast), tmp_path)
    model = read_model(tmp_path)
    options, ahead = PredictOptions(samples=5), {"price": np.array([1.0, 2.0, 1.0])}

    def reasons(past: Columns, future: Columns) -> list[Any]:
        answer = model.predict(past, options, future)  # type: ignore[call-arg]
        found = answer["reasons"]
        assert [bool(one) for one in found] == answer.out_of_distribution.tolist()
        return [[one.column for one in row] for row in found]

    assert not any(row and row[0] for row in reasons(columns, ahead))
    absurd = columns | {"sales": np.append(columns["sales"][:-1], 1e6)}
    assert [row[0] for row in reasons(absurd, ahead)] == ["sales"] * 3
    dear = {"price": np.array([1.0, 90.0, 1.0])}
    assert [row[0] for row in reasons(columns, dear)] == ["price"] * 3
