"""The sets of series: disjoint, in the order of time, without influence on what comes before."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import BBBConfig, DropoutConfig, EnsembleConfig, TrainingConfig
from models.evaluation.path_calibration import PathCalibration
from models.features.columns import Columns
from models.forecasting.model import Forecaster
from models.forecasting.problem import prepare_series
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import PLAIN, configure, fit, types_of

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


def test_a_forecaster_is_stored_with_its_calibration(
    forecaster: Forecaster, tmp_path: Path
) -> None:
    write_model(forecaster, tmp_path / "model")
    again = read_model(tmp_path / "model")
    assert again.variant(0.0).calibration == forecaster.variant(0.0).calibration
    one, two = (m.predict(walk(), PredictOptions(samples=20)) for m in (forecaster, again))
    np.testing.assert_array_equal(one.intervals[1].upper, two.intervals[1].upper)


def test_a_short_series_is_not_calibrated_and_says_so() -> None:
    """40 steps: 8 of them hold forecasts worth 7 independent errors at most."""
    model = fit(walk(40), **OPTIONS)
    assert model.config.training.calibration_fraction == 0
    assert model.variant(0.0).calibration is None
    assert "not calibrated" in model.notes[0]
