"""How a version's labels adapt its intervals: their order, and what was known when.

The labels of a version are one sequence: by the time of their prediction, then of their arrival,
then by row. So the adapted levels depend on the labels alone, not on when, how often or in which
portions they came. All variants, and all steps of forecasts, share the sequence.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np

from core.database.schema import FeedbackRow, Json
from models.evaluation.adaptive import Labels, covered, follow
from models.evaluation.conformal_rank import Reference
from models.evaluation.metrics import CONFORMAL_SCORE, COVERAGE_LEVELS


def labels_of(rows: Sequence[FeedbackRow]) -> Labels:
    """The labels of calibrated predictions among these rows, in their order.

    A label is known to predictions after its arrival. Where labels came in another order than
    predictions, their number counts, not which they are.
    """
    scored = [row for row in rows if CONFORMAL_SCORE in row.scores]
    ordered = sorted(scored, key=lambda row: (_predicted(row), row.number))
    each = [(row, score) for row in ordered for score in row.scores[CONFORMAL_SCORE]]
    arrived = np.sort([row.created_at.timestamp() for row, _ in each])
    predicted = [_predicted(row).timestamp() for row, _ in each]
    known = np.minimum(np.searchsorted(arrived, predicted), _first_of_row(each))
    return Labels.newest([_number(score) for _, score in each], known.tolist())


def describe(labels: Labels, reference: Reference) -> Json:
    """The adapted level of each level, and the share of rows inside the adaptive intervals.

    A row counts as inside if the interval contained it at the level adapted to the labels that were
    known when it was predicted.
    """
    if not labels.scores:
        return {}
    path = follow(reference, labels, COVERAGE_LEVELS)
    return {
        "adapted_level": _by_level(path[-1].clip(0, 1)),
        "adaptive_coverage": _by_level(covered(reference, labels, path).mean(0)),
    }


def to_json(labels: Labels) -> Json:
    """Labels for the database, which has null for scores that are not finite."""
    return {"scores": list(labels.scores), "known": list(labels.known)}


def from_json(stored: Json | None) -> Labels:
    """What `to_json` made; no labels for None."""
    if not stored:
        return Labels()
    return Labels(tuple(map(_number, stored["scores"])), tuple(stored["known"]))


def _predicted(row: FeedbackRow) -> datetime:
    return row.predicted_at or row.created_at


def _first_of_row(each: Sequence[tuple[FeedbackRow, Any]]) -> np.ndarray:
    """The place of the first label that came with each one: they know nothing of each other."""
    numbers = [row.number for row, _ in each]
    starts = [i if i == 0 or numbers[i] != numbers[i - 1] else -1 for i in range(len(numbers))]
    return np.maximum.accumulate(np.asarray(starts, dtype=int))


def _number(score: float | None) -> float:
    return np.inf if score is None else score


def _by_level(values: np.ndarray) -> dict[str, float]:
    return {f"{level:g}": float(v) for level, v in zip(COVERAGE_LEVELS, values, strict=True)}
