"""The rows that a network with parts learns from, and the model that a file gives back."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.artifact.files import read_model, write_model
from models.config import MLPConfig, ModelConfig, PartConfig, SplitBy, TrainingConfig
from models.features.columns import ColumnProfile
from models.features.effects import target_scores
from models.prediction.options import PredictOptions
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.preparation import prepare
from models.training.recipe import resolve
from models.training.train import train

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
        training=TrainingConfig(epochs=2, batch_size=256, learning_rate=0.01),
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
    assert encoder.has_effects
    correlation = np.corrcoef(learned, problem.rows.targets.numpy())[0, 1]
    assert abs(correlation) < 0.15  # five standard errors of 1,000 rows
    assert held_out.std() > 0


def test_effects_leave_out_the_folds_of_the_members(config: ModelConfig) -> None:
    """Rows of one shop in one fold then have the same effect, that of the other folds' rows."""
    folded = replace(config, training=replace(config.training, folds=4))
    problem = prepare(columns(), TYPES, folded)
    assert isinstance(problem, FoldProblem)
    encoder = problem.model.encoder
    inputs = encoder.expand(problem.rows.inputs)
    shop = encoder.feature_of == 1
    effect, slots = inputs[:, np.flatnonzero(shop)[0]], inputs[:, np.flatnonzero(shop)[2:]]
    frequent = slots.argmax(1) < len(encoder.encoders[1].levels)  # type: ignore[union-attr]
    cell = slots.argmax(1) * 4 + problem.folds.of_row
    spread = [
        float(effect[cell == c].std()) for c in cell[frequent].unique() if (cell == c).sum() > 1
    ]
    assert len(spread) > 100
    assert max(spread) < 1e-6
    assert effect[frequent].std() > 0.1


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
    assert encoder.has_effects
    assert (learned[:, [effect, certainty]] == 0).all()


def test_a_single_network_reads_what_it_did(config: ModelConfig) -> None:
    single = prepare(columns(), TYPES, resolve(_single(config), _profiles(), ROWS))
    assert single.model.encoder.width == 1 + 257
    assert single.model.encoder.layout.plain is None


def _single(config: ModelConfig) -> ModelConfig:
    return ModelConfig(target="y", network=MLPConfig(hidden=(8,)), training=config.training)


def _profiles() -> list[ColumnProfile]:
    return [ColumnProfile(name=n, type=t, levels=None) for n, t in TYPES.items()]


def test_the_model_of_a_file_predicts_the_same(config: ModelConfig, tmp_path: Path) -> None:
    table = columns()
    model = train(table, TYPES, config)
    assert isinstance(model, TabularModel)
    write_model(model, tmp_path / "model")
    again = read_model(tmp_path / "model")
    table["shop"][:2] = ["new shop", None]
    table["x"][2:4] = [np.nan, 1e30]
    table = {name: values[:50] for name, values in table.items()}
    options = PredictOptions(samples=30, seed=1)
    found, expected = again.predict(table, options), model.predict(table, options)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-4, atol=1e-4)
    assert np.isfinite(found.variance["total"]).all()


def test_effects_are_on_the_target_of_the_task(config: ModelConfig) -> None:
    problem = prepare(columns(), TYPES, config)
    [ratio] = problem.model.encoder.encoders[1].effects.noise_ratio  # type: ignore[union-attr]
    scores = target_scores(columns()["y"], classes=False)
    assert scores.shape == (ROWS, 1)
    assert 0.1 < ratio < 2.0  # noise and the effect of x beside effects of variance 1
    assert torch.isfinite(problem.rows.inputs).all()
