"""Simple methods for numbers. Each predicts a number, and its residuals make a distribution.

constant        the mean; the residuals of the learning rows, so that the distribution is theirs
linear          ridge regression; its residuals on rows left out, over five folds
boosted_trees   the mean model; residuals on rows left out, in up to ten groups by prediction
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int

from models.evaluation.baseline import BaselineKind
from models.features import weighted
from worker.baselines.estimators import Prepared, prepare
from worker.baselines.matrices import in_blocks
from worker.baselines.residuals import Residuals, groups_for
from worker.baselines.task import Task

FOLDS = 5

Scores = dict[str, Float[np.ndarray, "rows"]]


def score_numbers(
    kind: BaselineKind, task: Task, truth: Float[np.ndarray, "held_out"]
) -> tuple[Scores, int]:
    """The scores of each held-out row, and the number of rows that the method learned from.

    Raises:
        Stopped: the job must stop.
    """
    if kind == "constant":
        task.check_stop()
        mean = float(np.average(task.truth, weights=task.weights))
        residuals = Residuals.fit(np.full(len(task.truth), mean), task.truth, 1, task.weights)
        return residuals.scores(np.full(len(truth), mean), truth), len(task.truth)
    prepared = prepare(kind, task)
    left_out = _predict_left_out(prepared)
    known, weights = prepared.task.truth, prepared.task.weights
    groups = groups_for(weighted.total(known, weights)) if kind == "boosted_trees" else 1
    residuals = Residuals.fit(left_out, known, groups, weights)
    fitted = prepared.fit(slice(None))
    predicted = in_blocks(fitted.predict, prepared.encode, task.held_out)
    return residuals.scores(predicted, truth), len(known)


def _predict_left_out(prepared: Prepared) -> Float[np.ndarray, "learned"]:
    """The prediction of each learning row by an estimator that has not seen it."""
    predicted = np.empty(len(prepared.task.truth))
    for learned, left_out in folds(prepared.task):
        predicted[left_out] = prepared.fit(learned).predict(prepared.inputs[left_out])
    return predicted


def folds(task: Task) -> Iterator[tuple[Int[np.ndarray, "learned"], Int[np.ndarray, "left_out"]]]:
    """Rows to learn from and rows left out, at random or by whole groups."""
    from sklearn.model_selection import GroupKFold, KFold  # noqa: PLC0415

    count = 0 if task.groups is None else len(np.unique(task.groups.astype(str)))
    if task.groups is not None and count > 1:
        yield from GroupKFold(min(FOLDS, count)).split(task.truth, groups=task.groups.astype(str))
    else:
        yield from KFold(FOLDS, shuffle=True, random_state=0).split(task.truth)
