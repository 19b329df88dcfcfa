"""Static attributes are found out; covariates of the past alone are held beyond what is known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from models.config import FeatureConfig, ForecastConfig, ModelConfig, RecurrentConfig
from models.config import TrainingConfig as Training
from models.exceptions import InvalidData, InvalidInput
from models.features.columns import ColumnProfile, Columns
from models.forecasting.model import Forecaster
from models.forecasting.panels.observed import continued, draw_unknown, held
from models.forecasting.preparation import prepare_series
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

TYPES = {
    "time": "number",
    "y": "number",
    "z": "number",
    "shop": "category",
    "region": "category",
    "size": "number",
    "name": "category",
    "open": "boolean",
    "note": "text",
}
LEAD, SHOCK, NOISE, STEPS = 2, 0.1, 0.02, 500


def led(seed: int = 0) -> Columns:
    """log y_t = log y_{t−1} + SHOCK · z_{t−2} + NOISE · e_t: z tells two steps ahead."""
    random = np.random.default_rng(seed)
    z = random.normal(size=STEPS)
    change = SHOCK * np.concatenate([np.zeros(LEAD), z[:-LEAD]]) + NOISE * random.normal(size=STEPS)
    return {"time": np.arange(float(STEPS)), "y": 100 * np.exp(change.cumsum()), "z": z}


def configure(columns: Columns, training: Training | None = None, **options: Any) -> ModelConfig:
    features = options.pop("features", None)
    forecast = ForecastConfig(
        time="time", horizon=3, context=4, season=1, transform="log", classics=False, **options
    )
    config = ModelConfig(
        target="y",
        task="forecasting",
        forecast=forecast,
        features=features,
        network=RecurrentConfig(kind="rnn", hidden=(8,)),
        pruning=(),
        training=training or Training(epochs=1),
    )
    profiles = [ColumnProfile(name=name, type=TYPES[name]) for name in columns]
    return resolve(config, profiles, len(columns["y"]), lambda names: columns)


def fit(columns: Columns, **options: Any) -> Forecaster:
    model = train(columns, TYPES, configure(columns, **options))
    assert isinstance(model, Forecaster)
    return model


def test_values_are_held_from_the_last_known_step_on_and_marked() -> None:
    values = torch.arange(10.0).unsqueeze(1)
    positions, last = torch.tensor([[2, 3, 4], [5, 6, 7]]), torch.tensor([4, 5])
    found = held(values, positions, last)
    assert found[..., 0].tolist() == [[2, 3, 4], [5, 5, 5]]
    assert found[..., 1].tolist() == [[0, 0, 0], [0, 1, 1]]


def test_a_forecast_reads_what_windows_of_training_read_at_its_step() -> None:
    """The window of step h of a forecast is that of training with h − 1 unknown steps."""
    values, horizon, context, origin = torch.arange(20.0).unsqueeze(1), 4, 3, 12
    path = continued(values[origin - context : origin], horizon)
    for h in range(horizon):
        positions = torch.arange(origin + h - context, origin + h).unsqueeze(0)
        window = held(values, positions, torch.tensor([origin - 1]))
        assert torch.equal(path[h : h + context], window[0])


def test_each_distance_is_learned_equally_often() -> None:
    counts = draw_unknown(6_000, 3, 1).bincount()
    assert len(counts) == 3
    assert ((counts - 2_000).abs() < 5 * 2_000**0.5).all()


def test_a_covariate_of_the_past_tells_as_far_ahead_as_it_leads() -> None:
    """The deviation of log y_h: NOISE · √h while z is known, and from step 3 on one SHOCK more."""
    columns = led()
    once = Training(epochs=120, learning_rate=0.03, refit=False, calibration_fraction=0.0)
    model = fit(columns, training=once, past=("z",))
    assert [feature.name for feature in model.config.features or ()] == ["z"]
    assert model.future_inputs == ()
    origins, ratios, errors = range(450, 497, 2), [], []
    for origin in origins:
        past = {name: values[:origin] for name, values in columns.items()}
        paths = model.predict(past, PredictOptions(return_draws=True)).draws
        assert paths is not None
        logs, last = np.log(paths), np.log(columns["y"][origin - 1])
        known = last + SHOCK * columns["z"][origin - LEAD : origin].cumsum()
        ratios.append(logs.std(0))
        errors.append(np.abs(logs.mean(0)[:LEAD] - known))
    best = NOISE * np.sqrt([1, 2, 3 + (SHOCK / NOISE) ** 2])
    found = np.median(ratios, axis=0) / best
    assert (found < [2.5, 2.5, 1.4]).all()
    assert (found > 0.7).all()
    assert np.median(errors) < 0.3 * SHOCK  # without z: more than half of SHOCK


def panel(count: int = 12, steps: int = 30) -> Columns:
    random = np.random.default_rng(0)
    each = {
        "shop": [f"shop {i}" for i in range(count)],
        "region": ["north" if i % 2 else "south" for i in range(count)],
        "name": [f"name {i}" for i in range(count)],
        "note": [f"a note on {i}" for i in range(count)],
    }
    columns: dict[str, np.ndarray] = {
        name: np.repeat(np.array(values, dtype=object), steps) for name, values in each.items()
    }
    return columns | {
        "time": np.tile(np.arange(float(steps)), count),
        "y": np.exp(random.normal(size=count * steps)),
        "z": random.normal(size=count * steps),
        "size": np.repeat(random.normal(size=count), steps),
        "open": np.where(np.arange(count * steps) == 7, 0.0, 1.0),
    }


def test_attributes_that_never_change_within_a_series_are_found_and_read() -> None:
    """Not those of one series each, nor texts, nor what changes once."""
    config = configure(panel(), key="shop")
    assert [f.name for f in config.features or ()] == ["region", "size"]
    assert config.forecast is not None
    assert config.forecast.static == ("region", "size")
    few = {name: values[: 9 * 30] for name, values in panel().items()}
    assert configure(few, key="shop").features is None
    assert configure(panel(), key="shop", features=()).features is None
    assert configure(panel(), key="shop", static=()).features is None


def test_given_features_are_static_known_ahead_or_of_the_past() -> None:
    columns = panel()
    given = tuple(FeatureConfig(name=n, type=TYPES[n]) for n in ("z", "region", "open"))  # type: ignore[arg-type]
    config = configure(columns, key="shop", features=given, past=("z",))
    assert [f.name for f in config.features or ()] == ["region", "open", "z"]
    assert config.forecast is not None
    assert config.forecast.static == ("region",)
    model = prepare_series(columns, TYPES, config).model
    assert isinstance(model, Forecaster)
    assert [one.name for one in model.future_inputs] == ["open"]
    inputs = {one.name for one in model.inputs}
    assert inputs == {"time", "y", "shop", "region", "open", "z"}


@pytest.mark.parametrize(
    ("options", "message", "path"),
    [
        ({"past": ("nothing",)}, "nothing", "/forecast/past/0"),
        ({"past": ("y",)}, "read already", "/forecast/past/0"),
        ({"past": ("z", "note")}, "of type text", "/forecast/past/1"),
        ({"static": ("z",)}, "changes within a series", "/forecast/static"),
    ],
)
def test_what_cannot_be_such_a_covariate_is_refused(
    options: dict[str, Any], message: str, path: str
) -> None:
    with pytest.raises(InvalidData, match=message) as caught:
        configure(panel(), key="shop", **options)
    assert caught.value.path == path


def test_only_what_is_known_ahead_is_asked_for() -> None:
    columns = panel()
    given = tuple(FeatureConfig(name=n, type=TYPES[n]) for n in ("z", "region", "open"))  # type: ignore[arg-type]
    model = fit(columns, key="shop", features=given, past=("z",))
    history = {name: values[:30] for name, values in columns.items()}
    future = {"open": np.ones(3)}
    assert len(model.predict(history, PredictOptions(), future).mean) == 3
    with pytest.raises(InvalidInput, match="needs open of the 3 steps ahead"):
        model.predict(history, PredictOptions())


def test_members_read_covariates_of_as_many_steps_as_values() -> None:
    """Of a long season they read more than the usual number of steps."""
    random, steps = np.random.default_rng(0), 1_500
    columns: Columns = {
        "time": np.arange(float(steps)),
        "y": np.exp(random.normal(size=steps)),
        "z": random.normal(size=steps),
    }
    config = configure(columns, features=(FeatureConfig(name="z", type="number"),))
    assert config.forecast is not None
    config = replace(config, forecast=replace(config.forecast, season=450))
    model = train(columns, TYPES, config)
    assert isinstance(model, Forecaster)
    chosen = model.held_out_origins(columns)[:2]
    known, regressors = model.histories(chosen).known, model.regressors_at(chosen)
    assert known is not None
    assert regressors is not None
    assert regressors.shape == (2, known.shape[1] + model.horizon, 1)
    first = chosen[0].first
    read = regressors[0, -model.horizon :, 0]
    z = torch.from_numpy(columns["z"][first : first + model.horizon])
    assert torch.corrcoef(torch.stack([read, z.to(read)]))[0, 1] == pytest.approx(1, abs=1e-5)
