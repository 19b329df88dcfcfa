"""The rows that baselines learn from and are scored on."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import SplitTime, TrainingConfig
from models.tabular.preparation import prepare
from tests.worker.baselines.tables import BRIEF, TYPES, by_group, table, train_on
from worker.baselines.columns import read_table, split_table, thin


@pytest.mark.parametrize(
    "training",
    [BRIEF, replace(BRIEF, split="last"), by_group(), replace(BRIEF, split=SplitTime(time="day"))],
    ids=["random", "last", "by", "time"],
)
def test_the_held_out_rows_are_those_of_the_model(training: TrainingConfig) -> None:
    """The values of y are unique, so that they name the rows. Twenty have no target."""
    columns = table()
    columns["y"][10:30] = np.nan
    model = train_on(columns, training=training)
    problem = prepare(columns, TYPES, model.config)
    split = split_table(columns, model.config)
    held_out = problem.model.target.encode(columns["y"][split.held_out])
    assert problem.scores.targets.tolist() == held_out.tolist()
    assert sorted([*split.learned, *split.held_out]) == [*range(10), *range(30, 300)]


def test_columns_are_read_as_the_features_types() -> None:
    columns = table(3)
    columns["x"] = np.array([1.0, np.nan, 2.5])
    columns["day"] = np.array(["2026-03-02T05:06:07", "NaT", "1969-12-31T23:00"], "datetime64[us]")
    features = train_on(table(), features=("x", "wood", "day")).features
    read = read_table(columns, TYPES, features)
    expected = [
        [1.0, 1772427967.0, 2, 20514 % 7, 5],  # 20,514 days after 1970-01-01
        [np.nan] * 5,
        [2.5, -3600.0, 11, -1 % 7, 23],
    ]
    np.testing.assert_array_equal(read.numbers, expected)
    assert read.categories[:, 0].tolist() == columns["wood"].tolist()
    as_text = replace(features[0], type="category")
    assert read_table(columns, TYPES, [as_text]).categories[:, 0].tolist() == ["1", None, "2.5"]


def test_a_large_table_is_thinned_evenly() -> None:
    rows = np.arange(0, 2000, 2)
    assert thin(rows, 5000) is rows
    few = thin(rows, 100)
    assert (len(few), few[0], few[-1]) == (100, 0, 1998)
    assert set(np.diff(few)) <= {20, 22}
