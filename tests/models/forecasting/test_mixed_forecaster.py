"""A forecaster whose network has classical members beside it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.artifact.files import examine_artifact, read_model, write_model
from models.config import ForecastConfig
from models.features.columns import Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from models.training.train import train
from tests.models.forecasting.series_cases import QUICK, configure, sales, types_of

ASKED = PredictOptions(horizon=12, samples=200, intervals=(0.9,), return_draws=True)


def trained(columns: Columns, **options: Any) -> Forecaster:
    return train(columns, types_of(columns), configure(columns, **options))


@pytest.fixture(scope="module")
def mixed() -> Forecaster:
    """Ten years of which the last one is not given."""
    return trained(sales(108), pruning=(0.5,), training=replace(QUICK, epochs=10))


def test_a_plain_season_is_forecast_as_well_as_it_can_be(mixed: Forecaster) -> None:
    """The truth is known but for noise of 3 %, whose mean absolute error is 0.024 of the level."""
    whole = sales(120)
    past = {name: values[:108] for name, values in whole.items()}
    answer = mixed.predict(past, ASKED)
    t = np.arange(108, 120)
    truth = 100 * np.exp(0.01 * t + 0.3 * np.sin(2 * np.pi * t / 12))
    error = np.abs(answer.median / truth - 1).mean()
    assert error < 0.035  # of the middle; the seasonal naive forecast is 12 % too low
    credible = next(one for one in answer.intervals if one.kind == "credible")
    inside = (credible.lower <= whole["sales"][108:]) & (whole["sales"][108:] <= credible.upper)
    assert inside.mean() >= 0.75


def test_a_forecast_pauses_and_what_runs_meanwhile_changes_nothing(mixed: Forecaster) -> None:
    columns, options = sales(108), mixed.resolve(PredictOptions(samples=20, seed=3, horizon=2))
    history, others = mixed.read(columns, None, options), []

    def pause() -> None:
        if len(others) < 3:
            others.append(mixed.predict(columns, PredictOptions(samples=10, seed=5)).mean)

    found = mixed.predict_pausing(history, options, pause)
    assert len(others) == 3
    assert all((one == others[0]).all() for one in others)
    np.testing.assert_array_equal(found.mean, mixed.predict_rows(history, options).mean)


def test_an_artifact_keeps_the_members(mixed: Forecaster, tmp_path: Path) -> None:
    write_model(mixed, tmp_path)
    read = examine_artifact(tmp_path)
    assert read.classics == mixed.classics
    for prune in (0.0, 0.5):
        asked = replace(ASKED, prune=prune)
        before, after = (one.predict(sales(108), asked) for one in (mixed, read_model(tmp_path)))
        np.testing.assert_array_equal(before.mean, after.mean)


def test_they_can_be_left_out() -> None:
    alone = ForecastConfig(classics=False)
    model = trained(sales(), forecast=alone, training=replace(QUICK, epochs=1))
    assert model.classics is None
    assert model.description["forecast_members"] == [{"name": "network", "weight": 1.0}]
