"""Two targets of which the dependence is known, and a model of both."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest

from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.joint.model import JointModel
from models.joint.training import train_joint
from models.training.recipe import resolve
from models.training.train import TrainingRun

CORRELATION, SIGMAS = 0.8, (0.5, 1.0)
TYPES = {"x": "number", "flour": "number", "butter": "number"}
QUICK = TrainingConfig(epochs=30, batch_size=64, learning_rate=0.02, fine_tune_epochs=1)


def bakery(rows: int, seed: int) -> Columns:
    """flour = x + 0.5 ε₁ and butter = 10 − 2x + ε₂, where ε₁ and ε₂ have the correlation 0.8."""
    random = np.random.default_rng(seed)
    x = random.uniform(-2, 2, rows)
    noise = random.multivariate_normal([0, 0], [[1, CORRELATION], [CORRELATION, 1]], rows)
    return {
        "x": x,
        "flour": x + SIGMAS[0] * noise[:, 0],
        "butter": 10 - 2 * x + SIGMAS[1] * noise[:, 1],
    }


def configs(
    columns: Columns, training: TrainingConfig = QUICK, hidden: tuple[int, ...] | None = (8,)
) -> list[ModelConfig]:
    """The resolved configurations of both targets."""
    found, network = [], MLPConfig(hidden=hidden)
    for target in ("flour", "butter"):
        wanted = ModelConfig(target=target, network=network, training=training, pruning=(0.5,))
        profiles = [profile(name, columns[name]) for name in ("x", target)]
        rows = len(columns["x"])
        found.append(resolve(wanted, profiles, rows, partial(_load, columns)))
    return found


def profile(name: str, values: np.ndarray) -> ColumnProfile:
    known = values[np.isfinite(values)]
    return ColumnProfile(
        name=name,
        type="number",
        missing=len(values) - len(known),
        min=float(known.min()),
        max=float(known.max()),
        mean=float(known.mean()),
        std=float(known.std()),
    )


def _load(columns: Columns, names: list[str]) -> Mapping[str, np.ndarray]:
    return {name: columns[name] for name in names}


@pytest.fixture(scope="session")
def trained_on() -> Columns:
    return bakery(800, seed=0)


@pytest.fixture(scope="session")
def joint(trained_on: Columns) -> JointModel:
    return train_joint(trained_on, TYPES, configs(trained_on), TrainingRun())
