"""A small table with known roles of its columns, and models of it."""

from dataclasses import replace
from typing import Any

import numpy as np

from models.config import MLPConfig, TrainingConfig
from models.tabular.model import TabularModel
from tests.models.training.fitting import trained

Columns = dict[str, np.ndarray]
TRAINING = TrainingConfig(epochs=20, batch_size=64, learning_rate=0.02, fine_tune_epochs=0)


def table(rows: int = 400) -> Columns:
    """y rises with a and depends on the level; its noise grows with b; `constant` does nothing."""
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, rows))
    level = random.choice(np.array(["x", "y", "z"], object), rows)
    noise = np.exp(b) * random.normal(size=rows)
    y = 3 * a + 2 * (level == "x") + 0.3 * noise
    days = np.datetime64("2026-01-01") + random.integers(0, 300, rows).astype("timedelta64[D]")
    kind = np.where(y > 0, "high", "low").astype(object)
    constant = np.ones(rows)
    columns = {"a": a, "b": b, "level": level, "day": days.astype("datetime64[us]")}
    return columns | {"constant": constant, "y": y, "kind": kind}


def fit(target: str, **training: Any) -> TabularModel:
    other = {"y": "kind", "kind": "y"}[target]
    columns = {name: values for name, values in table().items() if name != other}
    return trained(
        columns,
        target=target,
        network=MLPConfig(hidden=(16,)),
        training=replace(TRAINING, **training),
        pruning=(0.5,),
    )
