"""The sets of series: disjoint, in the order of time, without influence on what comes before."""

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
    ForecastConfig,
    ModelConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.evaluation.path_calibration import PathCalibration
from models.exceptions import InvalidInput
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.forecasting.preparation import prepare_series
from models.forecasting.problem import SeriesProblem
from models.forecasting.sets import divide
from models.prediction.answers.totals import TotalsAnswer
from models.prediction.options import PredictOptions, Totals
from models.training.recipe import resolve
from models.training.train import train

TYPES = {"time": "number", "y": "number", "shop": "category"}
SMALL = RecurrentConfig(kind="rnn", hidden=(4,))
STEPS, HORIZON = 120, 2


def walk(steps: int = STEPS, seed: int = 0) -> Columns:
    values = np.random.default_rng(seed).normal(size=steps).cumsum()
    return {"time": np.arange(float(steps)), "y": values}


def configure(columns: Columns, **options: Any) -> ModelConfig:
    forecast = ForecastConfig(
        time="time",
        horizon=HORIZON,
        context=4,
        season=1,
        transform="none",
        key=options.pop("key", None),
        classics=False,
    )
    training = TrainingConfig(epochs=20, learning_rate=0.02, **options.pop("training", {}))
    method = options.setdefault("method", DropoutConfig(kind="mc_dropout"))
    pruning = () if isinstance(method, BBBConfig) else None
    config = ModelConfig(
        target="y", forecast=forecast, network=SMALL, training=training, pruning=pruning, **options
    )
    profiles = [ColumnProfile(name=name, type=TYPES[name]) for name in columns]
    return resolve(config, profiles, len(columns["y"]), lambda names: columns)


def fit(columns: Columns, **options: Any) -> Forecaster:
    model = train(columns, TYPES, configure(columns, **options))
    assert isinstance(model, Forecaster)
    return model


@pytest.fixture(scope="module")
def forecaster() -> Forecaster:
    return fit(walk())


def test_three_sets_follow_the_training_steps() -> None:
    config = configure(walk())
    assert config.training.stopping_fraction == 0.1
    assert config.training.calibration_fraction == 0.2
    assert config.training.refit
    sets = divide(STEPS, config)
    assert (sets.stopping, sets.calibration, sets.scores) == (72, 84, 108)


def test_windows_and_forecasts_have_the_steps_of_their_set_alone() -> None:
    """The walk's windows are identified by their targets, which all differ."""
    problem = prepare_series(walk(), TYPES, configure(walk()))
    assert problem.stopping is not None
    counts = [len(rows) for rows in (problem.rows, problem.stopping, problem.scores)]
    assert counts == [72 - 5, 12, 12]
    whole = problem.refit()
    assert len(whole.rows) == 108 - 5
    assert whole.stopping is None
    assert [origin.first for origin in problem.calibrating] == list(range(84, 107))
    assert isinstance(whole.model, Forecaster)
    scored = whole.model.held_out_origins(walk())
    assert [origin.first for origin in scored] == list(range(108, 119))
    assert (problem.profile.learned, problem.profile.stopping) == (103, 0)
    assert (problem.profile.calibration, problem.profile.held_out) == (24, 12)


@pytest.mark.parametrize("first", [72, 84])
def test_what_comes_later_does_not_change_the_first_fit(first: int) -> None:
    """Neither its windows, nor their scales; from 84 on not those that choose the epoch either."""
    columns = walk()
    changed = {**columns, "y": np.where(np.arange(STEPS) < first, columns["y"], 9.0)}
    one, two = (prepare_series(table, TYPES, configure(columns)) for table in (columns, changed))
    assert torch.equal(one.rows.inputs, two.rows.inputs)
    assert torch.equal(one.rows.targets, two.rows.targets)
    assert one.stopping is not None
    assert two.stopping is not None
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
    one, two = (fit(table, method=method) for table in (columns, changed))
    history = {name: values[:108] for name, values in columns.items()}
    first, second = (model.predict(history, PredictOptions(samples=20)) for model in (one, two))
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.intervals[1].upper, second.intervals[1].upper)
    assert one.variant(0.0).calibration == two.variant(0.0).calibration is not None
    assert one.variant(0.0).metrics != two.variant(0.0).metrics


def test_the_first_fit_calibrates_and_the_second_one_answers() -> None:
    """The calibration is that of forecasts by a model that ends before the calibration steps."""
    columns = walk()
    problem = prepare_series(columns, TYPES, configure(columns))
    shorter = {name: values[:108] for name, values in columns.items()}
    once = {"refit": False, "calibration_fraction": 0.2, "stopping_fraction": 0.1}
    model = fit(columns, training=once)
    assert model.variant(0.0).calibration == fit(columns).variant(0.0).calibration
    assert isinstance(problem, SeriesProblem)
    with_refit = fit(columns)
    options = PredictOptions(samples=20)
    means = [one.predict(shorter, options).mean for one in (model, with_refit)]
    assert not np.array_equal(*means)


def test_a_forecast_has_conformal_intervals_and_scores_without_calibration(
    forecaster: Forecaster,
) -> None:
    metrics = forecaster.variant(0.0).metrics
    assert set(metrics["conformal_coverage"]) == {"0.5", "0.8", "0.9", "0.95"}
    assert metrics["uncalibrated"]["log_likelihood"] != metrics["log_likelihood"]
    # 11 forecasts of two steps: ρ² is 1/2 between the steps of one, and between neighbours' that
    # share a step; the sum of squares is 22 + 2 · 11/2 + 2 · 10 · (1/4 + 1/2)
    assert metrics["independent_errors"] == pytest.approx(22**2 / (22 + 11 + 15))
    answer = forecaster.predict(walk(), PredictOptions(samples=50, intervals=(0.5, 0.9)))
    assert [(one.kind, one.level) for one in answer.intervals] == [
        ("credible", 0.5),
        ("credible", 0.9),
        ("conformal", 0.5),
        ("conformal", 0.9),
    ]
    calibration = forecaster.variant(0.0).calibration
    assert isinstance(calibration, PathCalibration)
    lower, upper = answer.intervals[3].lower, answer.intervals[3].upper
    ratio = (upper - lower) / np.sqrt(answer.variance["total"])
    # the deviation is that of a Gaussian's quantiles, which the total variance is close to
    half = calibration.half_widths(0.9, HORIZON).numpy()
    np.testing.assert_allclose(ratio, 2 * half, rtol=0.1)


def test_draws_are_calibrated_as_the_variances_are(forecaster: Forecaster) -> None:
    raw = replace(forecaster.variant(0.0), calibration=None)
    plain = forecaster.with_variants({0.0: raw})
    options = PredictOptions(samples=50, return_draws=True)
    one, other = (model.predict(walk(), options) for model in (forecaster, plain))
    calibration = forecaster.variant(0.0).calibration
    assert isinstance(calibration, PathCalibration)
    c = calibration.factors(HORIZON).numpy()
    np.testing.assert_allclose(one.mean, other.mean)
    np.testing.assert_allclose(one.variance["total"], c * other.variance["total"])
    assert one.draws is not None
    assert other.draws is not None
    centred = other.mean + np.sqrt(c) * (other.draws - other.mean)
    # the dependence of the steps is calibrated as well: which draw of a step goes with which
    np.testing.assert_allclose(np.sort(one.draws, 0), np.sort(centred, 0))


def test_sums_are_calibrated_by_those_of_the_same_forecasts(forecaster: Forecaster) -> None:
    calibration = forecaster.variant(0.0).calibration
    assert isinstance(calibration, PathCalibration)
    assert calibration.sums is not None
    pooled = calibration.sums.pooled
    assert 9 < pooled.independent < len(pooled.values) == len(calibration.residuals)
    assert [len(own.values) for own in calibration.sums.own] == [calibration.origins] * HORIZON
    answer = forecaster.predict(walk(), PredictOptions(samples=50, totals=Totals((0.0,))))
    found = answer.answers["totals"]
    assert isinstance(found, TotalsAnswer)
    np.testing.assert_allclose(found.mean, answer.mean.cumsum())
    assert found.conformal_upper is not None
    assert (found.conformal_upper[:, 0] > found.median).all()


def test_a_calibrated_forecaster_is_stored_with_its_calibration(
    forecaster: Forecaster, tmp_path: Path
) -> None:
    write_model(forecaster, tmp_path / "model")
    again = read_model(tmp_path / "model")
    assert again.variant(0.0).calibration == forecaster.variant(0.0).calibration
    one, two = (m.predict(walk(), PredictOptions(samples=20)) for m in (forecaster, again))
    for first, second in zip(one.intervals, two.intervals, strict=True):
        np.testing.assert_array_equal(first.upper, second.upper)


def test_a_short_series_is_not_calibrated_and_says_so() -> None:
    """40 steps: 8 of them hold forecasts worth 7 independent errors at most."""
    model = fit(walk(40))
    assert model.config.training.calibration_fraction == 0
    assert model.config.training.stopping_fraction == 0.1
    assert model.variant(0.0).calibration is None
    assert "not calibrated" in model.notes[0]
    with pytest.raises(InvalidInput, match="no conformal intervals"):
        model.predict(walk(40), PredictOptions(interval_kinds=("conformal",)))


def test_many_short_series_are_calibrated_together() -> None:
    shops = [{**walk(40, seed=i), "shop": np.array([f"s{i}"] * 40, object)} for i in range(4)]
    columns = {name: np.concatenate([shop[name] for shop in shops]) for name in shops[0]}
    calibration = fit(columns, key="shop").variant(0.0).calibration
    assert isinstance(calibration, PathCalibration)
    assert calibration.origins == 4 * 7
    assert calibration.independent > 9


def test_the_elbo_needs_no_steps_that_choose_the_epoch() -> None:
    config = configure(walk(), method=BBBConfig())
    assert (config.training.stopping_fraction, config.training.patience) == (0, None)
    patient = configure(walk(), method=BBBConfig(), training={"patience": 5})
    assert patient.training.stopping_fraction == 0.1
