"""Splits into folds, and rows that learn nothing from their own target."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.config import MLPConfig, ModelConfig, PartConfig, SplitBy, SplitTime, TrainingConfig
from models.features.columns import ColumnProfile
from models.features.splits import Folds, assign_folds, divide_rows, notes_on_classes
from models.tabular.preparation import prepare
from models.training.recipe import resolve

CONFIG = TrainingConfig(calibration_fraction=0.1, stopping_fraction=0.1)


def _rows(*counts: int, seed: int = 0) -> np.ndarray:
    rows = np.repeat(np.arange(len(counts)), counts)
    return np.random.default_rng(seed).permutation(rows)


def _counts(classes: np.ndarray, rows: np.ndarray) -> list[int]:
    return np.bincount(classes[rows], minlength=int(classes.max()) + 1).tolist()


def test_each_class_with_two_rows_is_learned_and_scored() -> None:
    """A random tenth misses each of these classes in 59 to 81 of 100 tables."""
    for seed in range(10):
        classes = _rows(400, 90, 5, 2, 2, seed=seed)
        division = divide_rows(replace(CONFIG, seed=seed), len(classes), None, classes)
        assert min(_counts(classes, division.scores)) >= 1
        assert min(_counts(classes, division.training)) >= 1
        sets = (division.training, division.stopping, division.calibration, division.scores)
        assert sorted(np.concatenate(sets).tolist()) == list(range(len(classes)))


def test_a_class_of_one_row_is_learned_not_scored_and_noted() -> None:
    classes = _rows(60, 40, 1)
    division = divide_rows(CONFIG, 101, None, classes)
    assert _counts(classes, division.training)[2] == 1
    (note,) = notes_on_classes(("a", "b", "c"), classes, division)
    assert "class c" in note


def test_groups_are_ordered_so_that_no_class_is_left_out() -> None:
    """Ten groups; the rare class is in two. The first order leaves it out for some seed."""
    groups = np.repeat(np.arange(10), 20).astype(str).astype(object)
    classes = np.where(np.isin(groups, ["3", "7"]), 2, np.arange(200) % 2)
    for seed in range(10):
        config = TrainingConfig(split=SplitBy(by="g"), seed=seed, validation_fraction=0.2)
        division = divide_rows(config, 200, groups, classes)
        assert min(_counts(classes, division.scores)) >= 1
        assert min(_counts(classes, division.training)) >= 1
        assert not set(groups[division.scores]) & set(groups[division.training])


@given(rows=st.integers(2, 300), count=st.integers(2, 8), members=st.integers(1, 24))
def test_each_row_is_left_out_by_its_fold(rows: int, count: int, members: int) -> None:
    of_row = assign_folds(TrainingConfig(folds=count), rows, None, None)
    folds = Folds(of_row, count)
    weights = folds.weights(members)
    for fold in range(count):
        out = weights[folds.rows(fold)] == 0
        expected = torch.zeros(members, dtype=torch.bool)
        expected[list(folds.members(fold, members))] = True
        assert bool((out == expected).all())
    assert sorted(torch.cat([folds.rows(fold) for fold in range(count)]).tolist()) == list(
        range(rows)
    )


@given(rows=st.integers(2, 300), count=st.integers(2, 8), parts=st.integers(1, 4))
def test_a_fold_is_cut_into_equal_parts(rows: int, count: int, parts: int) -> None:
    folds = Folds(assign_folds(TrainingConfig(folds=count), rows, None, None), count)
    cut = folds.cut(parts)
    assert torch.equal(cut.of_row // parts, folds.of_row)
    for fold in range(count):
        sizes = [len(cut.rows(fold * parts + part)) for part in range(parts)]
        assert max(sizes) - min(sizes) <= 1


def test_rows_of_a_group_are_in_one_fold() -> None:
    random = np.random.default_rng(0)
    key = random.integers(0, 40, 500)
    config = TrainingConfig(folds=4, split=SplitBy(by="patient"))
    of_row = assign_folds(config, len(key), key, None).numpy()
    assert all(len(set(of_row[key == group])) == 1 for group in set(key.tolist()))
    sizes = np.bincount(of_row, minlength=4)  # groups have 12.5 rows on average
    assert sizes.max() - sizes.min() < 25


def test_folds_of_times_are_blocks() -> None:
    times = np.random.default_rng(0).permutation(100).astype(float)
    config = TrainingConfig(folds=4, split=SplitTime(time="day"))
    of_row = assign_folds(config, 100, times, None).numpy()
    np.testing.assert_array_equal(of_row[np.argsort(times)], np.repeat(np.arange(4), 25))


def test_each_fold_has_its_share_of_a_rare_class() -> None:
    classes = np.array([0] * 192 + [1] * 8)
    of_row = assign_folds(TrainingConfig(folds=4), 200, None, classes).numpy()
    np.testing.assert_array_equal(np.bincount(of_row[classes == 1], minlength=4), 2)


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
