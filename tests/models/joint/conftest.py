"""Two targets of which the dependence is known, and a model of both."""

import numpy as np
import pytest

from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import Columns
from models.joint.fitting import train_joint
from models.joint.model import JointModel
from models.training.train import TrainingRun
from tests.models.training.fitting import resolved

CORRELATION, SIGMAS = 0.8, (0.5, 1.0)
TYPES = {"x": "number", "flour": "number", "butter": "number"}
QUICK = TrainingConfig(
    epochs=30, batch_size=64, learning_rate=0.02, fine_tune_epochs=1, background=0
)


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
    options = {"network": MLPConfig(hidden=hidden), "training": training, "pruning": (0.5,)}
    each = [{name: columns[name] for name in ("x", target)} for target in TYPES if target != "x"]
    return [resolved(own, target=list(own)[1], reads=True, **options) for own in each]


@pytest.fixture(scope="session")
def trained_on() -> Columns:
    return bakery(800, seed=0)


@pytest.fixture(scope="session")
def joint(trained_on: Columns) -> JointModel:
    return train_joint(trained_on, TYPES, configs(trained_on), TrainingRun())
