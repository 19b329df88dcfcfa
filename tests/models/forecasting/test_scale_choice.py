"""Which scale and support a series is given, on series whose truth is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from models.artifact.files import read_model, write_model
from models.config import (
    ForecastConfig,
    SupportConfig,
    TrainingConfig,
)
from models.features.columns import Columns
from models.forecasting.observation import Observation
from models.forecasting.scale_choice import choose, observations
from models.forecasting.series import Series
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import fit

COUNT = 240
T = np.arange(COUNT)
ONE = ForecastConfig(time="t", context=12, season=12, horizon=5)


def series(name: str) -> np.ndarray:
    random = np.random.default_rng(1)
    waves = np.sin(2 * np.pi * T / 12)
    walk = np.cumsum(random.normal(0, 0.3, COUNT))
    found = {
        "growing with its level": np.exp(3 + 0.01 * T + 0.5 * waves + random.normal(0, 0.1, COUNT)),
        "even noise": 12 + 8 * waves + random.normal(0, 1, COUNT),
        "around 0": random.normal(0, 1, COUNT),
        "Poisson": random.poisson(2, COUNT),
        "intermittent": random.poisson(3, COUNT) * (random.random(COUNT) < 0.3),
        "share": 1 / (1 + np.exp(-walk)),
        "large counts": random.poisson(50 * np.exp(0.3 * waves)),
    }
    return found[name].astype(float)


def chosen(values: np.ndarray, support: SupportConfig | None = None) -> tuple[str, Observation]:
    options = observations(values, values, support)
    one = Series(None, {}, T.astype(float), values)
    name = choose(options, [one], ONE)
    return name, options[name]


@pytest.mark.parametrize(
    ("name", "scale", "support"),
    [
        ("growing with its level", "log", (None, None, False)),
        ("even noise", "none", (0.0, None, False)),
        ("around 0", "none", (None, None, False)),
        ("Poisson", "counts", (0.0, None, True)),
        ("intermittent", "counts", (0.0, None, True)),
        ("share", "logit", (0.0, 1.0, False)),
    ],
)
def test_a_series_has_the_scale_that_made_it(
    name: str, scale: str, support: tuple[float | None, float | None, bool]
) -> None:
    found, observation = chosen(series(name))
    assert found == scale
    assert (observation.lower, observation.upper, observation.integer) == support


def test_intermittent_demand_is_forecast_as_it_is(tmp_path: Path) -> None:
    """The forecast of white noise is its distribution: 30 % of the days have a sale."""
    values = series("intermittent")
    columns: Columns = {"t": T.astype(float), "y": values}
    training = TrainingConfig(epochs=10, learning_rate=0.02)
    model = fit(columns, forecast=replace(ONE, season=1), training=training)
    assert model.forecast.transform == "counts"
    asked = PredictOptions(
        samples=50, intervals=(0.9,), exceeds=(0.0, 5.0), quantiles=(0.95,), return_draws=True
    )
    answer = model.predict(columns, asked)
    assert (answer.draws >= 0).all()
    assert (answer.draws == answer.draws.round()).all()
    sale = 1 - (values == 0).mean()
    assert answer.draws[:, 0].astype(bool).mean() == pytest.approx(sale, abs=0.25)  # 10 epochs
    shown = answer.intervals[0]
    assert (shown.lower == 0).all()
    assert (shown.upper == shown.upper.round()).all()
    write_model(model, tmp_path / "model")
    again = read_model(tmp_path / "model").predict(columns, asked)
    np.testing.assert_array_equal(again.draws, answer.draws)
