"""Generated tables for the baselines, and models of them that learned hardly anything."""

from dataclasses import replace
from typing import Any

import numpy as np

from models.config import FeatureConfig, MLPConfig, ModelConfig, SplitBy, TrainingConfig
from models.features.columns import ColumnProfile
from models.model import TrainedModel
from models.training.recipe import resolve
from models.training.train import train

TYPES = {"x": "number", "wood": "category", "day": "datetime", "group": "category"}
TYPES |= {"y": "number", "kind": "category", "weight": "number"}
BRIEF = TrainingConfig(epochs=1, batch_size=64, learning_rate=1e-4, fine_tune_epochs=0)


def table(rows: int = 300, seed: int = 0) -> dict[str, np.ndarray]:
    """y = 3x + 2 [wood is oak] + noise; `kind` follows from x; some features are missing."""
    random = np.random.default_rng(seed)
    x, wood = random.normal(size=rows), random.choice(np.array(["ash", "elm", "oak"]), rows)
    noise = random.normal(size=rows)
    kind = np.digitize(x + 0.5 * noise, [-0.5, 0.5])
    missing = random.random(rows) < 0.1
    return {
        "x": np.where(missing, np.nan, x),
        "wood": np.where(random.random(rows) < 0.1, None, wood.astype(object)),
        "day": np.datetime64("2026-01-01", "us") + np.arange(rows) * np.timedelta64(3, "h"),
        "group": np.array([f"g{i % 12}" for i in range(rows)], dtype=object),
        "y": 3 * x + 2 * (wood == "oak") + 0.5 * noise,
        "kind": np.array([f"k{i}" for i in kind], dtype=object),
        "weight": random.uniform(0.5, 2, rows),
    }


def train_on(
    columns: dict[str, np.ndarray],
    target: str = "y",
    features: tuple[str, ...] = ("x", "wood"),
    types: dict[str, str] | None = None,
    training: TrainingConfig = BRIEF,
    **config: Any,
) -> TrainedModel:
    """A model of the features, trained for a single epoch unless `training` says otherwise."""
    stored = types or TYPES
    profiles = [ColumnProfile(name=name, type=stored[name]) for name in columns]
    chosen = tuple(FeatureConfig(name=name, type=stored[name]) for name in features)
    options = {"network": MLPConfig(hidden=(8,)), "pruning": ()} | config
    wanted = ModelConfig(target=target, features=chosen, training=training, **options)
    rows = len(columns[target])
    return train(columns, stored, resolve(wanted, profiles, rows))


def by_group(training: TrainingConfig = BRIEF) -> TrainingConfig:
    return replace(training, split=SplitBy(by="group"), validation_fraction=0.2)
