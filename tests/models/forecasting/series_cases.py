"""Series to learn from, and forecasters of them by the recipe."""

from dataclasses import replace
from typing import Any

import numpy as np

from models.config import BBBConfig, ForecastConfig, ModelConfig, RecurrentConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.features.scales import LogScale
from models.forecasting.holidays import Holidays
from models.forecasting.model import Forecaster
from models.forecasting.observation import Observation
from models.training.recipe import resolve
from models.training.train import train

LOGARITHM = Observation(LogScale(0.0, 0.0))
SMALL = RecurrentConfig(kind="rnn", hidden=(4,))
QUICK = TrainingConfig(epochs=20, learning_rate=0.02, patience=30, fine_tune_epochs=2)
# Short windows of values as they are.
PLAIN = ForecastConfig(
    time="time", horizon=2, context=4, season=1, transform="none", classics=False
)


def months(count: int) -> np.ndarray:
    return (np.datetime64("2015-01", "M") + np.arange(count)).astype("datetime64[us]")


def sales(count: int = 84, seed: int = 0) -> dict[str, np.ndarray]:
    """Growing by 12 % a year, with a season and noise that grow along."""
    t, random = np.arange(count), np.random.default_rng(seed)
    trend = 100 * np.exp(0.01 * t + 0.3 * np.sin(2 * np.pi * t / 12))
    return {"month": months(count), "sales": trend * np.exp(0.03 * random.normal(size=count))}


def in_panel(shops: list[str], **values: np.ndarray) -> dict[str, np.ndarray]:
    """Series of the same steps, [shops, steps], one below the other."""
    steps = next(iter(values.values())).shape[1]
    return {
        "time": np.tile(np.arange(float(steps)), len(shops)),
        "shop": np.repeat(np.array(shops, dtype=object), steps),
        **{name: each.ravel() for name, each in values.items()},
    }


def types_of(columns: Columns) -> dict[str, Any]:
    kinds = {"M": "datetime", "O": "category"}
    found = {name: kinds.get(values.dtype.kind, "number") for name, values in columns.items()}
    return found | ({"note": "text"} if "note" in columns else {})


def configure(columns: Columns, **options: Any) -> ModelConfig:
    """A configuration by the recipe; only the default method has pruned variants, if asked."""
    target = "sales" if "sales" in columns else "y"
    wanted: dict[str, Any] = {
        "target": target,
        "task": "forecasting",
        "network": SMALL,
        "training": QUICK,
        "pruning": () if isinstance(options.get("method"), BBBConfig | None) else None,
        **options,
    }
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in types_of(columns).items()]
    rows = len(columns[target])
    return resolve(
        ModelConfig(**wanted), profiles, rows, lambda names: {name: columns[name] for name in names}
    )


def fit(columns: Columns, *, holidays: Holidays | None = None, **options: Any) -> Forecaster:
    """A forecaster without classical members."""
    alone = replace(options.pop("forecast", ForecastConfig()), classics=False)
    config = configure(columns, forecast=alone, **options)
    return train(columns, types_of(columns), config, holidays=holidays)
