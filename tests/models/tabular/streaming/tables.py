"""Tables in memory that are read as if they were on disk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.config import FeatureConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.tabular.streaming.blocks import Table
from models.training.recipe import resolve
from tests.models.training.fitting import profile

TYPES = {
    "x": "number",
    "skewed": "number",
    "city": "category",
    "flag": "boolean",
    "when": "datetime",
    "shop": "category",
    "w": "number",
    "y": "number",
    "kind": "category",
}
FEATURES = ("x", "skewed", "city", "flag", "when", "shop")


@dataclass(frozen=True)
class Memory:
    """Blocks of columns in memory."""

    columns: Columns

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def read(self, start: int, stop: int, names: Sequence[str] | None = None) -> Columns:
        wanted = list(self.columns) if names is None else names
        return {name: self.columns[name][start:stop].copy() for name in wanted}


def make(rows: int, seed: int = 0) -> dict[str, np.ndarray]:
    """A table of all types with missing values; y follows from x, city, shop and noise."""
    random = np.random.default_rng(seed)
    x, city = random.normal(size=rows), random.integers(0, 4, rows)
    shop = (random.pareto(1.0, rows) * 8).astype(int).clip(0, 60)
    effects = np.random.default_rng(1).normal(size=61)
    y = x + 0.5 * city + effects[shop] + 0.5 * random.normal(size=rows)
    cities = np.array([f"c{i}" for i in city], object)
    cities[random.random(rows) < 0.05] = None
    start = np.datetime64("2024-01-01T00:00", "us")
    return {
        "x": np.where(random.random(rows) < 0.03, np.nan, x),
        "skewed": random.lognormal(size=rows),
        "city": cities,
        "flag": random.integers(0, 2, rows).astype(float),
        "when": start + (random.random(rows) * 400 * 86_400e6).astype("timedelta64[us]"),
        "shop": np.array([f"s{i}" for i in shop], object),
        "w": random.integers(1, 4, rows).astype(float),
        "y": np.where(random.random(rows) < 0.02, np.nan, y),
        "kind": np.array(["low", "middle", "high"], object)[np.digitize(y, [0.0, 2.0])],
    }


def profiles(columns: Columns) -> list[ColumnProfile]:
    return [profile(name, values, TYPES[name]) for name, values in columns.items()]


def config_of(columns: Columns, **given: Any) -> ModelConfig:
    """A configuration of the features with every setting filled in."""
    training = TrainingConfig(effort="quick", seed=3)
    features = tuple(FeatureConfig(name=n, type=TYPES[n]) for n in FEATURES)  # type: ignore[arg-type]
    options = {"target": "y", "features": features, "training": training, "pruning": (), **given}
    return resolve(ModelConfig(**options), profiles(columns), len(columns["y"]))


def table_of(columns: Columns, **given: Any) -> Table:
    return Table(Memory(columns), config_of(columns, **given))
