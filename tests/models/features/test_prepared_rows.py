"""The rows that a network with parts learns from, and the model that a file gives back."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import MLPConfig, ModelConfig, PartConfig, SplitBy, TrainingConfig
from models.features.columns import ColumnProfile
from models.tabular.preparation import prepare
from models.training.recipe import resolve

ROWS, LEVELS = 1_200, 400
TYPES = {"x": "number", "shop": "category", "y": "number"}


def columns(rows: int = ROWS) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    names = np.array([f"shop {i}" for i in range(LEVELS)], dtype=object)
    index, x = random.integers(0, LEVELS, rows), random.exponential(size=rows)
    effects = random.normal(size=LEVELS)
    y = effects[index] + np.sin(3 * x) + 0.1 * random.normal(size=rows)
    return {"x": x, "shop": names[index], "y": y}


@pytest.fixture
def config() -> ModelConfig:
    part = PartConfig(members=2, hidden=(8,))
    plain = PartConfig(members=1, hidden=(8,), inputs="plain")
    asked = ModelConfig(
        target="y",
        network=MLPConfig(parts=(part, plain)),
        pruning=(),
        training=TrainingConfig(epochs=1, batch_size=256, learning_rate=0.01),
    )
    profiles = [
        ColumnProfile(name=n, type=t, levels=("a",) * 50 if t == "category" else None)
        for n, t in TYPES.items()
    ]
    return resolve(asked, profiles, ROWS)


def test_no_row_learns_from_its_own_target(config: ModelConfig) -> None:
    """In rows that were learned from, effects hardly follow the noise; with their own targets they
    would: a level of three rows has a third of each row's noise."""
    table, random = columns(), np.random.default_rng(1)
    table["y"] = random.normal(size=ROWS)
    problem = prepare(table, TYPES, config)
    encoder = problem.model.encoder
    at = int(np.flatnonzero(encoder.feature_of[encoder.plain_columns] == 1)[0])
    learned = encoder.expand(problem.rows.inputs)[:, at].numpy()
    held_out = encoder.expand(problem.scores.inputs)[:, at].numpy()
    correlation = np.corrcoef(learned, problem.rows.targets.numpy())[0, 1]
    assert abs(correlation) < 0.15  # five standard errors of 1,000 rows
    assert held_out.std() > 0


def test_rows_of_a_group_learn_nothing_from_each_others_targets(config: ModelConfig) -> None:
    """Every shop is in one group, so that no row has a shop that it knows from other groups."""
    table, groups = columns(), np.array([f"group {i}" for i in range(60)], dtype=object)
    number = np.array([int(shop.removeprefix("shop ")) for shop in table["shop"]])
    table["group"] = groups[number % 60]
    training = replace(config.training, split=SplitBy(by="group"))
    problem = prepare(table, TYPES | {"group": "category"}, replace(config, training=training))
    encoder = problem.model.encoder
    plain = encoder.feature_of[encoder.plain_columns] == 1
    effect, certainty = np.flatnonzero(plain)[:2]
    learned = encoder.expand(problem.rows.inputs)
    assert (learned[:, [effect, certainty]] == 0).all()
