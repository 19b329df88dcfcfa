"""Which scale and support a series is given, on series whose truth is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import (
    ForecastConfig,
    ModelConfig,
    RecurrentConfig,
    SupportConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.forecasting.observation import Observation
from models.forecasting.scale_choice import choose, named, observations
from models.forecasting.series import Series
from models.forecasting.windows import Frame
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

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


def test_a_given_support_is_kept_and_must_hold() -> None:
    values = series("large counts")
    _, observation = chosen(values, SupportConfig(lower=0.0, upper=200.0, integer=False))
    assert (observation.lower, observation.upper, observation.integer) == (0.0, 200.0, False)
    with pytest.raises(InvalidData, match="above the upper bound 60"):
        observations(values, values, SupportConfig(upper=60.0))


def test_a_scale_that_the_values_cannot_have_is_refused() -> None:
    options = observations(series("around 0"), series("around 0"), None)
    for transform in ("log", "sqrt", "logit", "counts"):
        with pytest.raises(InvalidData, match=f"'{transform}', which needs .*; they can on none"):
            named(options, transform)  # type: ignore[arg-type]


@pytest.mark.parametrize(("level", "from_mean"), [(0.0, True), (1.0, False)])
def test_a_window_starts_from_its_mean_where_the_series_returns_to_it(
    level: float, from_mean: bool
) -> None:
    """White noise is nearer to the mean of 12 values than to the last one; a random walk is not."""
    random = torch.Generator().manual_seed(0)
    noise = torch.randn(300, 13, generator=random).double()
    values = noise.cumsum(1) if level else noise
    frame = Frame(context=12, season=1)
    past = torch.cat([values[:, :1], values[:, :12]], 1)
    assert frame.fit(past, values[:, 12]).from_mean is from_mean


def fit(values: np.ndarray, **options: object) -> Forecaster:
    columns: Columns = {"t": T[: len(values)].astype(float), "y": values}
    profiles = [ColumnProfile(name=name, type="number") for name in columns]
    config = ModelConfig(
        target="y",
        task="forecasting",
        network=RecurrentConfig(kind="rnn", hidden=(4,)),
        training=TrainingConfig(epochs=10, learning_rate=0.02),
        forecast=replace(ONE, season=1),
        pruning=(),
        **options,  # type: ignore[arg-type]
    )
    config = resolve(config, profiles, len(values), lambda names: {n: columns[n] for n in names})
    model = train(columns, {"t": "number", "y": "number"}, config)
    assert isinstance(model, Forecaster)
    return model


def test_intermittent_demand_is_forecast_as_it_is(tmp_path: Path) -> None:
    """The forecast of white noise is its distribution: 30 % of the days have a sale."""
    values = series("intermittent")
    model = fit(values)
    assert model.forecast.transform == "counts"
    assert any("whole numbers with the lower bound 0" in note for note in model.notes)
    asked = PredictOptions(
        samples=50, intervals=(0.9,), exceeds=(0.0, 5.0), quantiles=(0.95,), return_draws=True
    )
    columns: Columns = {"t": T.astype(float), "y": values}
    answer = model.predict(columns, asked)
    assert answer.draws is not None
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


def test_a_share_stays_between_its_bounds() -> None:
    model = fit(series("share"))
    answer = model.predict(
        {"t": T.astype(float), "y": series("share")},
        PredictOptions(samples=50, intervals=(0.99,), return_draws=True),
    )
    ends = [answer.intervals[0].lower, answer.intervals[0].upper, answer.draws]
    assert all((end >= 0).all() and (end <= 1).all() for end in ends)  # type: ignore[operator]
