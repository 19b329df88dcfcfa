"""The order of a version's labels, and what they adapt, on both databases."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import torch

from core.clock import now
from core.database.database import Database
from core.database.schema import FeedbackRow, ModelRow, PredictionRow
from core.predictions.adaptation import labels_of
from core.predictions.feedback import Feedback
from models.evaluation.adaptive import adapt
from models.evaluation.conformal_rank import Reference
from models.evaluation.metrics import CONFORMAL_SCORE, COVERAGE_LEVELS, PerRowScores
from tests.core.predictions.conftest import NAMES, version_row
from tests.core.together import at_once

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
REFERENCE = Reference(np.linspace(0.01, 3, 200), np.ones(200))


@pytest.fixture
def feedback(database: Database) -> Feedback:
    """With a version, and the stored predictions pred_0 to pred_9, a minute apart."""
    with database.begin() as session:
        session.add(ModelRow(name="square", last_version=1))
        session.flush()
        session.add(version_row(1))
        session.flush()
        of = {"model": "square", "version": 1, "options": {}, "rows": 2, "inputs": b""}
        for i in range(10):
            at = now() - timedelta(hours=1) + timedelta(minutes=i)
            session.add(PredictionRow(id=f"pred_{i}", created_at=at, **of))
    return Feedback(database, 2000)


def scores(*values: float) -> PerRowScores:
    """Scores of rows, with an uncalibrated prediction's names and the conformal scores."""
    rows = torch.tensor(values, dtype=torch.float64)
    found = {name: torch.ones_like(rows) for name in NAMES} | {CONFORMAL_SCORE: rows}
    for level in COVERAGE_LEVELS:
        found |= {f"coverage_{level:g}": torch.ones_like(rows)}
        found |= {f"width_{level:g}": torch.ones_like(rows)}
    return found


def send(feedback: Feedback, number: int, *values: float) -> dict[str, dict[str, float]]:
    given = scores(*values) if values else scores(number, number + 0.5)
    added = feedback.add("square", 1, given, f"pred_{number}", REFERENCE)
    metrics: dict[str, dict[str, float]] = added.rolling.metrics
    return metrics


def in_order(feedback: Feedback) -> tuple[float, ...]:
    return feedback.labels("square", 1).scores


@pytest.mark.parametrize("order", [(0, 1, 2, 2), (2, 0, 1, 0), (1, 1, 2, 0)])
def test_labels_are_in_the_order_of_their_predictions(
    feedback: Feedback, order: tuple[int, ...]
) -> None:
    """However they arrive: late, twice, or one after the other."""
    expected = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    for number in order:
        metrics = send(feedback, number)
    assert in_order(feedback) == expected
    labels = feedback.labels("square", 1)
    levels = [one.adapted for one in adapt(REFERENCE, labels, COVERAGE_LEVELS)]
    assert list(metrics["adapted_level"].values()) == levels


def test_replicas_that_add_at_once_lose_no_label(feedback: Feedback) -> None:
    at_once(lambda i: send(feedback, i, float(i)), 8)
    assert in_order(feedback) == tuple(map(float, range(8)))


def test_rows_without_a_stored_prediction_were_predicted_when_they_came(
    feedback: Feedback,
) -> None:
    feedback.add("square", 1, scores(7.0), None, REFERENCE)
    send(feedback, 3)
    assert in_order(feedback) == (3.0, 3.5, 7.0)


def test_scores_of_the_first_release_stand_beside_new_ones(feedback: Feedback) -> None:
    """It stored no conformal scores."""
    old = scores(1.0)
    del old[CONFORMAL_SCORE]
    feedback.add("square", 1, old)
    added = feedback.add("square", 1, scores(2.0, 3.0), None, REFERENCE)
    assert in_order(feedback) == (2.0, 3.0)
    assert added.rolling.metrics["rows"] == 3


def row(number: int, predicted: float, arrived: float, *values: float | None) -> FeedbackRow:
    """A row with times in minutes after noon."""
    return FeedbackRow(
        number=number,
        scores={CONFORMAL_SCORE: list(values)},
        predicted_at=NOON + timedelta(minutes=predicted),
        created_at=NOON + timedelta(minutes=arrived),
    )


def test_a_row_is_covered_at_the_level_of_the_labels_known_then() -> None:
    """Labels that arrive five predictions late say nothing about the five before."""
    rows = [row(i, i, i + 4.5, 1.0) for i in range(10)]
    assert labels_of(rows).known == (0, 0, 0, 0, 0, 1, 2, 3, 4, 5)
    together = [row(1, 0, 0, 1.0, 1.0), row(2, 0, 0, 1.0, None)]
    assert labels_of(together).known == (0, 0, 0, 0)
    assert labels_of(together).scores == (1.0, 1.0, 1.0, np.inf)
