"""`class_weight` balanced: every class counts the same in training, not in the scores."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from models.config import MethodConfig, MLPConfig, ModelConfig, TrainingConfig
from models.exceptions import InvalidData
from models.features.class_weights import with_class_weights
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.training.recipe import resolve
from models.training.train import train
from tests.models.training.test_weights import METHODS

ROWS = 300
BALANCED = TrainingConfig(epochs=3, batch_size=32, fine_tune_epochs=1, class_weight="balanced")
TYPES = {"x": "number", "c": "category", "w": "number"}


def _columns() -> Columns:
    random = np.random.default_rng(0)
    c = random.choice(["a", "b", "rare"], ROWS, p=[0.6, 0.35, 0.05])
    centres = {"a": -1.0, "b": 0.0, "rare": 1.0}
    x = np.array([centres[name] for name in c]) + random.normal(size=ROWS)
    return {"x": x, "c": c.astype(object), "w": random.integers(1, 4, ROWS).astype(float)}


def _resolved(method: MethodConfig, training: TrainingConfig, weight: str | None) -> ModelConfig:
    columns = _columns()
    profiles = [
        ColumnProfile(name="x", type="number", min=-5.0, max=5.0),
        ColumnProfile(name="c", type="category", levels=("a", "b", "rare"), num_levels=3),
        ColumnProfile(name="w", type="number", min=1.0, max=3.0),
    ]
    used = [p for p in profiles if p.name != "w" or weight is not None]
    config = ModelConfig(
        target="c",
        weight=weight,
        method=method,
        network=MLPConfig(hidden=(6,)),
        training=training,
        pruning=(),
    )
    return resolve(config, used, ROWS, lambda names: {n: columns[n] for n in names})


def _weights_of_classes(rows_weights: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
    return np.array([float(rows_weights[targets == k][0]) for k in range(3)])


def test_the_weights_are_those_of_scikit_learn() -> None:
    numbers = np.random.default_rng(0).choice(3, 200, p=[0.7, 0.25, 0.05])
    found = with_class_weights(BALANCED, numbers, slice(None), None)
    assert found is not None
    assert found == pytest.approx(compute_sample_weight("balanced", numbers))
    assert found.sum() == pytest.approx(200)


def test_row_weights_count_as_repeated_rows() -> None:
    numbers = np.array([0, 0, 0, 1])
    repeated = np.repeat(numbers, [1, 2, 3, 2])
    once = with_class_weights(BALANCED, numbers, slice(None), np.array([1.0, 2.0, 3.0, 2.0]))
    each = with_class_weights(BALANCED, repeated, slice(None), None)
    assert once is not None
    assert each is not None
    assert once.sum() == pytest.approx(each.sum())
    assert once[3] == pytest.approx(each[-2:].sum())


def test_learned_rows_are_weighed_and_scored_ones_are_not() -> None:
    problem = prepare(_columns(), TYPES, _resolved(METHODS["bbb"], BALANCED, None))
    assert problem.scores.weights is None
    assert problem.calibration is not None
    assert problem.rows.weights is not None
    expected = compute_class_weight(
        "balanced", classes=np.arange(3), y=problem.rows.targets.numpy()
    )
    for rows in (problem.rows, problem.calibration):
        assert rows.weights is not None
        assert _weights_of_classes(rows.weights, rows.targets) == pytest.approx(expected)
    weighed = prepare(_columns(), TYPES, _resolved(METHODS["bbb"], BALANCED, "w"))
    assert weighed.scores.weights is not None
    assert set(weighed.scores.weights.tolist()) <= {1.0, 2.0, 3.0}


@pytest.mark.training
@pytest.mark.parametrize("name", METHODS)
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


@pytest.mark.parametrize("task", ["regression", "forecasting"])
def test_other_tasks_refuse_it_by_its_path(task: str) -> None:
    profiles = [ColumnProfile(name="x", type="number"), ColumnProfile(name="y", type="number")]
    config = ModelConfig(target="y", task=task, training=BALANCED)  # type: ignore[arg-type]
    with pytest.raises(InvalidData, match=f"a {task} has no classes to weigh") as caught:
        resolve(config, profiles, 100)
    assert caught.value.path == "/training/class_weight"


@pytest.mark.training
def test_balanced_probabilities_turn_into_those_of_the_table_by_its_shares() -> None:
    """Two Gaussians, 5 % of the rare class: p s ÷ Σ p s is near the true probability.

    Raw balanced probabilities are 0.2 away on average, converted ones of 2,400 rows 0.01 to 0.02.
    """
    random = np.random.default_rng(0)
    rare = random.random(3_000) < 0.05
    x = random.normal(size=3_000) + 1.5 * rare
    columns = {"x": x, "c": np.where(rare, "rare", "usual").astype(object)}
    profiles = [
        ColumnProfile(name="x", type="number", min=-5.0, max=5.0),
        ColumnProfile(name="c", type="category", levels=("usual", "rare"), num_levels=2),
    ]
    training = replace(BALANCED, epochs=15, batch_size=128)
    config = ModelConfig(target="c", method=METHODS["map"], training=training, pruning=())
    model = train(columns, TYPES, resolve(config, profiles, 3_000))
    p, share = model.predict({"x": x}, PredictOptions()).mean[:, 0], rare.mean()
    truth = 1 / (1 + (1 - share) / share * np.exp(-1.5 * x + 1.5**2 / 2))
    assert np.abs(p - truth).mean() > 0.15
    converted = p * share / (p * share + (1 - p) * (1 - share))
    assert np.abs(converted - truth).mean() < 0.03
