"""`class_weight` balanced: every class counts the same in training, not in the scores."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from models.config import MethodConfig, MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import Columns
from models.features.weights import with_class_weights
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.training.train import train
from tests.models.training.fitting import resolved
from tests.models.training.test_weights import METHODS

ROWS = 300
BALANCED = TrainingConfig(epochs=3, batch_size=32, class_weight="balanced", background=0)
TYPES = {"x": "number", "c": "category", "w": "number"}


def _columns() -> Columns:
    random = np.random.default_rng(0)
    c = random.choice(["a", "b", "rare"], ROWS, p=[0.6, 0.35, 0.05])
    centres = {"a": -1.0, "b": 0.0, "rare": 1.0}
    x = np.array([centres[name] for name in c]) + random.normal(size=ROWS)
    return {"x": x, "c": c.astype(object), "w": random.integers(1, 4, ROWS).astype(float)}


def _resolved(method: MethodConfig, training: TrainingConfig, weight: str | None) -> ModelConfig:
    used = {n: v for n, v in _columns().items() if n != "w" or weight is not None}
    return resolved(
        used,
        target="c",
        weight=weight,
        method=method,
        network=MLPConfig(hidden=(6,)),
        training=training,
        pruning=(),
        reads=True,
    )


def test_the_weights_are_those_of_scikit_learn() -> None:
    numbers = np.random.default_rng(0).choice(3, 200, p=[0.7, 0.25, 0.05])
    found = with_class_weights(BALANCED, numbers, slice(None), None)
    assert found is not None
    assert found == pytest.approx(compute_sample_weight("balanced", numbers))
    assert found.sum() == pytest.approx(200)


@pytest.mark.parametrize("name", ["bbb", "map", "sgld"])
def test_each_method_learns_what_it_learns_from_a_column_of_these_weights(name: str) -> None:
    """The same weights as a column give the same posterior, bit for bit."""
    columns, method = _columns(), METHODS[name]
    config = _resolved(method, BALANCED, None)
    problem = prepare(columns, TYPES, config)
    learned = problem.rows if problem.stopping is None else problem.refit().rows
    names = np.array(problem.model.classes)[learned.targets.numpy()]
    weights = compute_class_weight("balanced", classes=np.unique(names), y=names)
    factors = dict(zip(np.unique(names).tolist(), weights, strict=True))
    columns = {**columns, "w": np.array([factors[c] for c in columns["c"].tolist()])}
    plain = _resolved(method, replace(BALANCED, class_weight="none"), "w")
    plain = replace(plain, features=config.features)
    models = [train(columns, TYPES, one) for one in (config, plain)]
    for one, other in zip(*(m.variants_by_prune[0.0].state.tensors() for m in models), strict=True):
        assert torch.equal(one, other)
    assert any("all classes are equally frequent" in note for note in models[0].notes)
    assert isinstance(models[0], TabularModel)
