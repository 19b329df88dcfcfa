"""A forecaster whose network has classical members beside it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.artifact.files import examine_artifact, read_model, write_model
from models.config import FeatureConfig, ForecastConfig
from models.forecasting.backtest import seasonal_naive
from models.forecasting.holidays import Holidays
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from models.training.train import train
from tests.models.test_forecaster import QUICK, TYPES, configure, months, sales

pytestmark = pytest.mark.training

ASKED = PredictOptions(horizon=12, samples=200, intervals=(0.9,), return_draws=True)


@pytest.fixture(scope="module")
def mixed() -> Forecaster:
    """Ten years of which the last one is not given."""
    config = configure(sales(108), pruning=(0.5,), training=replace(QUICK, epochs=30))
    model = train(sales(108), TYPES, config)
    assert isinstance(model, Forecaster)
    return model


def test_what_a_forecast_is_made_of_is_said(mixed: Forecaster) -> None:
    members = mixed.description["forecast_members"]
    assert sum(one["weight"] for one in members) == pytest.approx(1)
    assert {"network"} < {one["name"] for one in members}
    assert members == sorted(members, key=lambda one: -one["weight"])


def test_a_network_without_a_part_is_said() -> None:
    """Of 60 months none are left to calibrate."""
    config = configure(sales(60), training=replace(QUICK, epochs=2))
    model = train(sales(60), TYPES, config)
    assert isinstance(model, Forecaster)
    assert model.classics is not None
    assert model.classics.share == 1
    note = "classical members alone, with every pruned variant: no steps were left"
    assert any(note in one for one in model.notes)


def test_covariates_of_the_past_keep_the_network_where_nothing_weighs_it() -> None:
    """Classical members do not read them; they do read holidays."""
    config = configure(sales(60), training=replace(QUICK, epochs=2))
    assert config.forecast is not None
    columns = {**sales(60), "price": np.arange(60.0)}
    of_past = replace(config.forecast, past=("price",))
    features = (FeatureConfig(name="price", type="number"),)
    types = {**TYPES, "price": "number"}
    model = train(columns, types, replace(config, forecast=of_past, features=features))
    assert isinstance(model, Forecaster)
    assert model.classics is None
    of_days = replace(config, forecast=replace(config.forecast, holidays="here"))
    model = train(sales(60), TYPES, of_days, holidays=Holidays((0,), -40_000, 40_000))
    assert isinstance(model, Forecaster)
    assert model.classics is not None


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


def test_scores_beside_naive_are_of_the_mixture(mixed: Forecaster) -> None:
    origins = mixed.held_out_origins(sales(108))
    naive = seasonal_naive(origins, 12, mixed.horizon)
    truth = np.concatenate([one.targets(mixed.horizon) for one in origins])
    ours = mixed.variant(0.0).metrics["mae"]
    assert ours < 0.5 * float(np.abs(naive.means[0].numpy() - truth).mean())


def test_it_reads_more_of_the_history_than_the_network_does(mixed: Forecaster) -> None:
    whole = sales(108)
    short = {name: values[-mixed.frame.span :] for name, values in whole.items()}
    long, cut = (mixed.predict(one, ASKED) for one in (whole, short))
    assert not np.allclose(long.mean, cut.mean)
    widths = [one.intervals[0].upper - one.intervals[0].lower for one in (long, cut)]
    assert widths[0].mean() < widths[1].mean()  # two years tell less than nine


def test_paths_of_all_members_are_among_the_draws(mixed: Forecaster) -> None:
    answer = mixed.predict(sales(108), ASKED)
    assert answer.draws is not None
    assert answer.draws.shape == (2_000, 12)
    np.testing.assert_allclose(answer.draws.mean(0), answer.mean, rtol=0.02)
    few = mixed.predict(sales(108), replace(ASKED, samples=1))
    assert np.isfinite(few.mean).all()


def test_a_forecast_pauses_at_each_step_and_what_runs_meanwhile_changes_nothing(
    mixed: Forecaster,
) -> None:
    columns, options = sales(108), mixed.resolve(PredictOptions(samples=20, seed=3, horizon=4))
    history, others = mixed.read(columns, None, options), []

    def pause() -> None:
        others.append(mixed.predict(columns, PredictOptions(samples=10, seed=5)).mean)

    found = mixed.predict_pausing(history, options, pause)
    assert len(others) >= 4
    assert all((one == others[0]).all() for one in others)
    np.testing.assert_array_equal(found.mean, mixed.predict_rows(history, options).mean)


def test_missing_values_before_the_window_are_taken(mixed: Forecaster) -> None:
    holes = sales(108)
    holes["sales"] = holes["sales"].copy()
    holes["sales"][[3, 20, 21, 50]] = np.nan
    found, whole = (mixed.predict(one, ASKED) for one in (holes, sales(108)))
    np.testing.assert_allclose(found.mean, whole.mean, rtol=0.05)


def test_an_artifact_keeps_the_members(mixed: Forecaster, tmp_path: Path) -> None:
    write_model(mixed, tmp_path)
    read = examine_artifact(tmp_path)
    assert isinstance(read, Forecaster)
    assert read.classics == mixed.classics
    for prune in (0.0, 0.5):
        asked = replace(ASKED, prune=prune)
        before, after = (one.predict(sales(108), asked) for one in (mixed, read_model(tmp_path)))
        np.testing.assert_array_equal(before.mean, after.mean)


def test_they_can_be_left_out() -> None:
    columns = {"month": months(84), "sales": sales()["sales"]}
    config = configure(
        columns, forecast=ForecastConfig(classics=False), training=replace(QUICK, epochs=2)
    )
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    assert model.classics is None
    assert model.description["forecast_members"] == [{"name": "network", "weight": 1.0}]
