"""Which steps of a forecast are flagged, where the process that made the series is known."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import ForecastConfig
from models.features.columns import Columns
from models.forecasting.model import Forecaster
from models.forecasting.preparation import prepare_series
from models.prediction.options import PredictOptions
from tests.models.test_forecaster import QUICK, TYPES, fit

LEARNED, LATER, HORIZON = 120, 60, 12
OPTIONS = PredictOptions(samples=100)
# Steps of a forecast share weight draws and noise: a few shares of flagged steps are not binomial.
MOST = 0.03


def shops(count: int, steps: int = LEARNED + LATER) -> Columns:
    """Shops of different sizes with the same season and noise, each step independent."""
    random, t = np.random.default_rng(1), np.arange(steps)
    season, noise = 0.3 * np.sin(2 * np.pi * t / 12), 0.1 * random.normal(size=(count, steps))
    level = random.uniform(20, 200, size=(count, 1))
    months = (np.datetime64("2010-01", "M") + t).astype("datetime64[us]")
    columns = {"month": np.tile(months, count), "sales": (level * np.exp(season + noise)).ravel()}
    if count == 1:
        return columns
    return columns | {
        "shop": np.repeat(np.array([f"shop {i}" for i in range(count)], object), steps)
    }


def until(columns: Columns, step: int) -> Columns:
    """The first steps of every shop."""
    known = np.arange(len(columns["month"])) % (LEARNED + LATER) < step
    return {name: values[known] for name, values in columns.items()}


def trained(columns: Columns) -> Forecaster:
    forecast = ForecastConfig(key="shop" if "shop" in columns else None, horizon=HORIZON)
    return fit(columns, forecast=forecast, training=replace(QUICK, epochs=20))


@pytest.mark.parametrize("count", [1, 2, 8])
def test_forecasts_of_the_same_process_are_rarely_flagged(count: int) -> None:
    columns = shops(count)
    model = trained(until(columns, LEARNED))
    detector = model.detector(0.0)
    held_out = count * HORIZON
    assert detector.rows == held_out
    assert detector.false_alarm_rate == pytest.approx(max(0.01, 1 / (held_out + 1)))
    most = max(MOST, detector.false_alarm_rate)
    later = [
        model.predict(until(columns, end), OPTIONS).out_of_distribution
        for end in range(LEARNED, LEARNED + LATER, 12)
    ]
    assert np.mean(later) <= most
    long = model.predict(until(columns, LEARNED), replace(OPTIONS, horizon=3 * HORIZON))
    assert long.out_of_distribution.mean() <= most


def test_histories_unlike_those_of_training_are_still_flagged() -> None:
    columns = until(shops(2), LEARNED)
    model, strange = trained(columns), columns["sales"].copy()
    strange[-1] *= 30  # of the second shop
    by_shop = model.predict(columns | {"sales": strange}, OPTIONS).out_of_distribution
    assert by_shop.reshape(2, HORIZON)[1].all()
    assert by_shop.reshape(2, HORIZON)[0].mean() < 0.5


def test_scores_of_forecasts_have_the_unit_of_windows() -> None:
    """The first step of a forecast is that of its window: both have one score."""
    columns = until(shops(2), LEARNED)
    model = trained(columns)
    problem = prepare_series(columns, TYPES, model.config)
    assert problem.whole is not None
    windows = model.ood_score(problem.whole.scores.inputs).reshape(2, HORIZON)
    chosen = model.held_out_origins(columns)
    assert [origin.first for origin in chosen] == [LEARNED - HORIZON] * 2
    options = model.resolve(OPTIONS)
    first = model.roll_out(model.histories(chosen), options).ood_score().reshape(2, HORIZON)[:, 0]
    np.testing.assert_allclose(first.numpy(), windows[:, 0], rtol=0.3)  # 100 other weight draws
