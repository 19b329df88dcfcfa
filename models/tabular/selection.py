"""Chooses among candidates by their out-of-fold log scores of the same rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.evaluation.paired import paired
from models.tabular.candidates import Candidate

MAX_KEPT = 3  # candidates whose members the model has: more make it slower, and hardly better


@dataclass(frozen=True)
class Attempt:
    """A fitted candidate.

    Args:
        fit: its `models.training.stages.Fit`.
        scores: log likelihood of each row, out of fold, in the target's unit.
    """

    candidate: Candidate
    fit: Any
    scores: Float[Tensor, "rows"]

    @property
    def score(self) -> float:
        return float(self.scores.mean())


def best_of(attempts: Sequence[Attempt]) -> Attempt:
    return max(attempts, key=lambda attempt: attempt.score)


def keep(attempts: Sequence[Attempt], most: int = MAX_KEPT) -> list[Attempt]:
    """The best attempt and those that cannot be told from it: their members are averaged.

    An attempt is kept if its mean score is less than a standard error of the paired difference
    below the best one's, or if the mixture with it is better by more than a standard error.
    """
    ranked = sorted(attempts, key=lambda attempt: -attempt.score)
    kept, mixture = ranked[:1], ranked[0].scores
    for attempt in ranked[1:]:
        behind = paired(ranked[0].scores, attempt.scores)
        with_it = mixture_scores([*kept, attempt])
        if len(kept) < most and (not behind.is_clear or paired(with_it, mixture).is_clear):
            kept, mixture = [*kept, attempt], with_it
    return kept


def mixture_scores(attempts: Sequence[Attempt]) -> Float[Tensor, "rows"]:
    """log of the mean density of the attempts, for each row."""
    stacked = torch.stack([attempt.scores for attempt in attempts])
    return stacked.logsumexp(0) - math.log(len(attempts))


def describe(attempts: Sequence[Attempt], kept: Sequence[Attempt]) -> Json:
    """The selection as `models.artifact.schema.SelectionDocument`, the best candidate first."""
    best = best_of(attempts)
    ranked = sorted(attempts, key=lambda attempt: -attempt.score)
    averaged = float(mixture_scores(kept).mean())
    note = (
        f"{best.candidate.name} is best"
        if len(kept) == 1
        else f"{len(kept)} candidates are averaged: together {averaged:.4g}"
    )
    return {
        "candidates": [_describe(attempt, best, attempt in kept) for attempt in ranked],
        "metric": "log_likelihood",
        "rows": len(best.scores),
        "note": note,
    }


def _describe(attempt: Attempt, best: Attempt, kept: bool) -> Json:
    rows = len(attempt.scores)
    behind = paired(attempt.scores, best.scores)
    return {
        "name": attempt.candidate.name,
        "settings": attempt.candidate.settings,
        "score": attempt.score,
        "standard_error": float(attempt.scores.std()) / math.sqrt(rows),
        "difference": behind.difference,
        "difference_error": behind.standard_error,
        "kept": kept,
    }
