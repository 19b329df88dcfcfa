"""Simple methods for classes: their probabilities, scored as those of a model."""

import numpy as np
import torch
from jaxtyping import Float, Int

from models.config import Json
from models.evaluation import class_scores
from models.evaluation.baseline import BaselineKind
from models.evaluation.class_scores import class_row_scores
from models.evaluation.metrics import (
    PerRowScores,
    classification_metrics,
    classification_scores,
)
from models.evaluation.weighting import WEIGHT
from models.likelihoods.class_mixture import CategoricalMixture
from worker.baselines.estimators import prepare
from worker.baselines.matrices import in_blocks
from worker.baselines.task import Task

LEAST = 1e-9  # a probability of 0 would cost infinitely much, as for a class that was never seen
REPORTED = (
    "rows",
    "weight",
    "accuracy",
    "balanced_accuracy",
    "average_precision",
    "auroc",
    "log_likelihood",
    "brier",
    "ece",
    "ece_expected",
    "ece_debiased",
    "standard_errors",
)


def score_classes(
    kind: BaselineKind, task: Task, truth: Int[np.ndarray, "held_out"]
) -> tuple[PerRowScores, int]:
    """The scores of each held-out row, and the number of rows that the method learned from.

    Raises:
        Stopped: the job must stop.
    """
    if kind == "constant":
        task.check_stop()
        counts = np.bincount(task.truth, task.weights, minlength=task.num_classes or 0)
        probabilities, rows = np.tile(counts / counts.sum(), (len(truth), 1)), len(task.truth)
    else:
        prepared = prepare(kind, task)
        fitted = prepared.fit(slice(None))
        known = in_blocks(fitted.predict_proba, prepared.encode, task.held_out)
        probabilities = np.zeros((len(truth), task.num_classes or 0))
        probabilities[:, fitted.classes_] = known
        rows = len(prepared.task.truth)
    scores = scores_of(probabilities, truth)
    if task.held_out_weights is not None:
        scores |= {WEIGHT: torch.from_numpy(task.held_out_weights)}
    return scores, rows


def scores_of(
    probabilities: Float[np.ndarray, "rows classes"], truth: Int[np.ndarray, "rows"]
) -> PerRowScores:
    """The scores of probabilities, which are at least `LEAST`."""
    positive = probabilities.clip(LEAST)
    logits = torch.from_numpy(np.log(positive / positive.sum(1, keepdims=True)))
    mixture, targets = CategoricalMixture(logits.unsqueeze(0)), torch.from_numpy(truth)
    return classification_scores(mixture, targets) | class_row_scores(mixture.mean(), targets)


def class_metrics(scores: PerRowScores, num_classes: int) -> Json:
    """The main scores under the names that a model's metrics have."""
    metrics = classification_metrics(scores)
    by_class, errors = class_scores.class_metrics(scores, range(num_classes))
    metrics |= by_class | {"standard_errors": metrics["standard_errors"] | errors}
    return {name: metrics[name] for name in REPORTED if name in metrics}
