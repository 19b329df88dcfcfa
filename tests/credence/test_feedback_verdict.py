"""The verdict of the client is that of the service, with the counts behind it."""

from typing import Any

import pytest

from core.predictions.window_check import check_window, verdict
from core.predictions.window_check import leaves as leaves_by_service
from credence.feedback_verdict import leaves, sentence
from credence.types import RollingFeedback
from models.evaluation.metrics import PerRowScores
from tests.core.predictions.test_window_check import HELD_OUT, numbers


def rolling(
    scores: PerRowScores, labels: int, window: int = 1000, **held_out: Any
) -> RollingFeedback:
    check = check_window(scores, labels, window, [held_out or HELD_OUT])
    return {"model": "m", "version": 1, "window": window, "metrics": {"check": check}}


@pytest.mark.parametrize(
    ("inside", "rows"), [(0.48, 100), (0.7, 1000), (0.85, 198), (0.9, 1000), (1.0, 198)]
)
def test_intervals_are_judged_as_by_the_service(inside: float, rows: int) -> None:
    found = rolling(numbers(rows, inside), rows)
    check = found["metrics"]["check"]
    assert leaves(found) == leaves_by_service(check)
    test = check["coverage"]["0.9"]
    said = f"Inside the 90 % interval: {verdict(check)} ({test['inside']} of {test['rows']} rows"
    assert sentence(found).startswith(said)
    assert ("the newest 98 wait" in sentence(found)) == (rows == 198)
