"""The scores of each held-out row of a trained model, to compare it with others in pairs."""

import hashlib
from collections.abc import Callable

import numpy as np

from core.jobs.row_scores import RowScores
from models.features.columns import Columns
from models.model import TrainedModel
from worker.baselines.columns import split_table, thin
from worker.baselines.tables import own_scores

MOST_ROWS = 20_000  # more would change the standard error of a difference by less than a percent


def score_rows(
    model: TrainedModel, columns: Columns, should_stop: Callable[[], bool]
) -> RowScores | None:
    """The log likelihood of at most `MOST_ROWS` held-out rows; None for forecasts and texts.

    Args:
        columns: the training data. Its split is computed again.

    Raises:
        Stopped: `should_stop` returned True between two blocks of rows.
    """
    if not model.has_independent_rows:
        return None
    held_out = split_table(columns, model.config).held_out
    some = thin(held_out, MOST_ROWS)
    found = own_scores(model, "log_likelihood", columns, some, should_stop)
    weight = model.config.weight
    return RowScores(
        hashlib.sha256(some.astype("<i8").tobytes()).hexdigest(),
        found.double().numpy(),
        None if weight is None else columns[weight][some].astype(np.float64),
    )
