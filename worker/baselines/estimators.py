"""scikit-learn's estimators as baselines use them: settings that need no tuning.

constant        no estimator: every row gets the same prediction
linear          RidgeCV, or LogisticRegression (multinomial) with the default penalty
boosted_trees   HistGradientBoosting, which stops early on a tenth of its rows; of standardised
                numbers, because its tolerance for that is absolute
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Shaped

from models.evaluation.baseline import BaselineKind
from worker.baselines.columns import Table
from worker.baselines.matrices import Encode, Matrix, linear_encoder, tree_encoder
from worker.baselines.task import MOST_ROWS, Task

# Rows × columns (× classes, if there are more than two) of a fit. Numbers take six fits, classes
# one. Measured on one core: 15 s for 17,000 rows × 300 numbers, 1 s for 12,000 × 10.
MOST_CELLS_OF_NUMBERS = 5_000_000
MOST_CELLS_OF_CLASSES = 10_000_000
PENALTIES = np.logspace(-3, 4, 15)  # of the ridge regression; leaving out single rows chooses
ROUNDS = 100  # the default of HistGradientBoosting
MOST_CLASSES = 100  # of boosted trees: each round grows a tree per class
STOPPING_SHARE = 0.1  # the default of HistGradientBoosting


@dataclass(frozen=True)
class Prepared:
    """A task for one kind of estimator.

    Args:
        task: thinned to what is learned from.
        inputs: the encoded rows to learn from.
        make: a new estimator.
    """

    task: Task
    inputs: Matrix
    encode: Encode
    make: Callable[[], Any]

    def fit(self, rows: np.ndarray | slice) -> Any:
        """An estimator that has learned from some of the rows.

        Raises:
            Stopped: the job must stop.
        """
        self.task.check_stop()
        truth, weights = self.task.truth[rows], self.task.weights_of(rows)
        return self.make().fit(self.inputs[rows], truth, sample_weight=weights)


def prepare(kind: BaselineKind, task: Task) -> Prepared:
    """Thin the task, encode it and choose the estimator.

    Raises:
        ValueError: boosted trees for more than `MOST_CLASSES` classes.
    """
    task.check_stop()
    is_linear = kind == "linear"
    fit_encoder = linear_encoder if is_linear else tree_encoder
    task = task.thinned(MOST_ROWS)
    encode = fit_encoder(task.learned)
    task = task.thinned(_most_rows(encode(task.learned[:1]).shape[1], task.num_classes))
    inputs = encode(task.learned)
    make = _linear(task) if is_linear else _trees(task)
    return Prepared(task, inputs, encode, make)


def _most_rows(width: int, num_classes: int | None) -> int:
    """The rows that keep a fit within its cells. Two classes take one column of weights."""
    if num_classes is None:
        return max(1, MOST_CELLS_OF_NUMBERS // width)
    columns = width * (num_classes if num_classes > 2 else 1)
    return max(1, MOST_CELLS_OF_CLASSES // columns)


def _linear(task: Task) -> Callable[[], Any]:
    from sklearn.linear_model import LogisticRegression, RidgeCV  # noqa: PLC0415

    if task.num_classes is None:
        return lambda: RidgeCV(alphas=PENALTIES)
    return lambda: LogisticRegression(max_iter=500)


def _trees(task: Task) -> Callable[[], Any]:
    from sklearn.compose import TransformedTargetRegressor  # noqa: PLC0415
    from sklearn.ensemble import (  # noqa: PLC0415
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    if task.num_classes is not None and task.num_classes > MOST_CLASSES:
        raise ValueError(f"{task.num_classes} classes: boosted trees take at most {MOST_CLASSES}")
    regression = task.num_classes is None
    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    settings = {
        "max_iter": ROUNDS,
        "categorical_features": _is_category(task.learned),
        "early_stopping": regression or _can_stop_early(task.truth),
        "validation_fraction": STOPPING_SHARE,
        "random_state": 0,
    }
    if not regression:
        return lambda: kind(**settings)
    return lambda: TransformedTargetRegressor(
        kind(**settings), transformer=StandardScaler(), check_inverse=False
    )


def _is_category(table: Table) -> np.ndarray:
    numbers, categories = table.numbers.shape[1], table.categories.shape[1]
    return np.arange(numbers + categories) >= numbers


def _can_stop_early(truth: Shaped[np.ndarray, "rows"]) -> bool:
    """Whether the rows that stop the training can have every class: scikit-learn requires it."""
    counts = np.unique_counts(truth).counts
    return bool(counts.min() > 1 and STOPPING_SHARE * len(truth) >= len(counts))
