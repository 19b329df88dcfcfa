"""Which steps of a forecast are flagged, where the process that made the series is known."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import ForecastConfig
from models.features.columns import Columns
from models.forecasting.model import Forecaster
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import QUICK, fit

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
    names = np.array([f"shop {i}" for i in range(count)], object)
    return {
        "month": np.tile(months, count),
        "sales": (level * np.exp(season + noise)).ravel(),
        "shop": np.repeat(names, steps),
    }


def until(columns: Columns, step: int) -> Columns:
    """The first steps of every shop."""
    known = np.arange(len(columns["month"])) % (LEARNED + LATER) < step
    return {name: values[known] for name, values in columns.items()}


def trained(columns: Columns) -> Forecaster:
    forecast = ForecastConfig(key="shop", horizon=HORIZON)
    return fit(columns, forecast=forecast, training=replace(QUICK, epochs=20))


def test_forecasts_of_the_same_process_are_rarely_flagged() -> None:
    count = 8
    columns = shops(count)
    model = trained(until(columns, LEARNED))
    detector = model.detector(0.0)
    held_out = count * HORIZON
    assert detector.rows == held_out
    assert detector.false_alarm_rate == pytest.approx(max(0.01, 1 / (held_out + 1)))
    most = max(MOST, detector.false_alarm_rate)
    later = [
        model.predict(until(columns, end), OPTIONS).out_of_distribution
        for end in range(LEARNED, LEARNED + LATER, 20)
    ]
    assert np.mean(later) <= most
    long = model.predict(until(columns, LEARNED), replace(OPTIONS, horizon=3 * HORIZON))
    assert long.out_of_distribution.mean() <= most
