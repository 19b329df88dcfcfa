"""The rows that baselines learn from and are scored on."""

from dataclasses import replace

import numpy as np
import pytest

from models.config import SplitTime, TrainingConfig
from models.tabular.preparation import prepare
from tests.worker.baselines.tables import BRIEF, TYPES, by_group, table, train_on
from worker.baselines.columns import split_table


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
