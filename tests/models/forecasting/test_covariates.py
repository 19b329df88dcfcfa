"""Static attributes are found out; covariates of the past alone are held beyond what is known."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from models.config import FeatureConfig, RecurrentConfig
from models.config import TrainingConfig as Training
from models.features.columns import Columns
from models.forecasting.panel import hold_last
from models.forecasting.problem import prepare_series
from models.prediction.options import PredictOptions
from tests.models.forecasting.series_cases import PLAIN, configure, fit, in_panel, types_of

LEAD, SHOCK, NOISE, STEPS = 2, 0.1, 0.02, 500


def led(seed: int = 0) -> Columns:
    """log y_t = log y_{t−1} + SHOCK · z_{t−2} + NOISE · e_t: z tells two steps ahead."""
    random = np.random.default_rng(seed)
    z = random.normal(size=STEPS)
    change = SHOCK * np.concatenate([np.zeros(LEAD), z[:-LEAD]]) + NOISE * random.normal(size=STEPS)
    return {"time": np.arange(float(STEPS)), "y": 100 * np.exp(change.cumsum()), "z": z}


def options_of(training: Training | None = None, features: Any = None, **forecast: Any) -> Any:
    """Three steps of logarithms, read four at a time."""
    return {
        "forecast": replace(PLAIN, horizon=3, transform="log", **forecast),
        "features": features,
        "network": RecurrentConfig(kind="rnn", hidden=(8,)),
        "training": training or Training(epochs=1),
    }


def test_values_are_held_from_the_last_known_step_on_and_marked() -> None:
    values = torch.arange(10.0).unsqueeze(1)
    positions, last = torch.tensor([[2, 3, 4], [5, 6, 7]]), torch.tensor([4, 5])
    found = hold_last(values, positions, last)
    assert found[..., 0].tolist() == [[2, 3, 4], [5, 5, 5]]
    assert found[..., 1].tolist() == [[0, 0, 0], [0, 1, 1]]


def test_a_covariate_of_the_past_tells_as_far_ahead_as_it_leads() -> None:
    """The deviation of log y_h: NOISE · √h while z is known, and from step 3 on one SHOCK more."""
    columns = led()
    once = Training(epochs=80, learning_rate=0.03, refit=False, calibration_fraction=0.0)
    model = fit(columns, **options_of(once, past=("z",)))
    assert model.future_inputs == ()
    origins, ratios, errors = range(450, 497, 2), [], []
    for origin in origins:
        past = {name: values[:origin] for name, values in columns.items()}
        paths = model.predict(past, PredictOptions(return_draws=True)).draws
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
    random, shops, shape = np.random.default_rng(0), range(count), (count, steps)
    each = {
        "region": ["north" if i % 2 else "south" for i in shops],
        "name": [f"name {i}" for i in shops],
        "note": [f"a note on {i}" for i in shops],
        "size": random.normal(size=count),
    }
    known = {
        name: np.repeat(np.array(values, None if name == "size" else object), steps)
        for name, values in each.items()
    }
    found = in_panel(
        [f"shop {i}" for i in shops],
        y=np.exp(random.normal(size=shape)),
        z=random.normal(size=shape),
        open=np.where(np.arange(count * steps) == 7, 0.0, 1.0).reshape(shape),
    )
    return found | known


def test_attributes_that_never_change_within_a_series_are_found_and_read() -> None:
    """Not those of one series each, nor texts, nor what changes once."""
    config = configure(panel(), **options_of(key="shop"))
    assert [f.name for f in config.features or ()] == ["region", "size"]
    assert config.forecast.static == ("region", "size")
    few = {name: values[: 9 * 30] for name, values in panel().items()}
    assert configure(few, **options_of(key="shop")).features is None
    assert configure(panel(), **options_of(key="shop", static=())).features is None


def test_given_features_are_static_known_ahead_or_of_the_past() -> None:
    columns = panel()
    given = tuple(
        FeatureConfig(name=name, type=kind)  # type: ignore[arg-type]
        for name, kind in {"z": "number", "region": "category", "open": "number"}.items()
    )
    config = configure(columns, **options_of(key="shop", features=given, past=("z",)))
    assert [f.name for f in config.features or ()] == ["region", "open", "z"]
    assert config.forecast.static == ("region",)
    model = prepare_series(columns, types_of(columns), config).model
    assert [one.name for one in model.future_inputs] == ["open"]
    inputs = {one.name for one in model.inputs}
    assert inputs == {"time", "y", "shop", "region", "open", "z"}
