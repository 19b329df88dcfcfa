"""Folds: each row in one, groups together, times in blocks, classes in equal shares."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from models.config import SplitBy, SplitTime, TrainingConfig
from models.features.folds import Folds, assign_folds


@given(rows=st.integers(2, 300), count=st.integers(2, 8), members=st.integers(1, 24))
def test_each_row_is_left_out_by_the_members_of_its_fold(
    rows: int, count: int, members: int
) -> None:
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


@given(rows=st.integers(2, 300), count=st.integers(2, 8))
def test_random_folds_have_equal_sizes(rows: int, count: int) -> None:
    of_row = assign_folds(TrainingConfig(folds=count), rows, None, None)
    sizes = np.bincount(of_row.numpy(), minlength=count)
    assert sizes.max() - sizes.min() <= 1


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


def test_equal_seeds_give_equal_folds() -> None:
    first, second, other = (
        assign_folds(TrainingConfig(folds=4, seed=seed), 100, None, None) for seed in (1, 1, 2)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
