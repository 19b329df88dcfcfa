"""Windows of labelled rows, on both databases, against the metrics of the rows that they hold."""

import numpy as np
import pytest
import sqlalchemy as sa
import torch

from core.database.database import Database
from core.database.schema import FeedbackRow, FeedbackWindowRow, ModelRow
from core.predictions.feedback import Feedback, describe
from models.evaluation.metrics import COVERAGE_LEVELS, PerRowScores
from tests.core.predictions.conftest import NAMES, version_row
from tests.core.together import at_once

WINDOW = 100
HELD_OUT = -1.25


@pytest.fixture
def feedback(database: Database) -> Feedback:
    """With versions 1 to 8 of a model."""
    with database.begin() as session:
        session.add(ModelRow(name="square", last_version=8))
        session.flush()
        for number in range(1, 9):
            session.add(version_row(number, metrics={"log_likelihood": HELD_OUT}))
    return Feedback(database, WINDOW)


def scores(rows: int, seed: int) -> PerRowScores:
    random = np.random.default_rng(seed)
    made = {name: torch.from_numpy(random.exponential(size=rows)) for name in NAMES}
    for level in COVERAGE_LEVELS:
        made[f"width_{level:g}"] = torch.from_numpy(random.exponential(size=rows))
    inside = {f"coverage_{q:g}": torch.from_numpy(random.random(rows) < q) for q in COVERAGE_LEVELS}
    return made | {name: values.double() for name, values in inside.items()}


def kept(database: Database) -> int:
    with database.read() as session:
        return session.scalars(sa.select(sa.func.count()).select_from(FeedbackRow)).one()


def test_labels_of_a_version_with_groups_tell_the_coverage_of_each() -> None:
    """Rows of a group that training did not see, −1, are in none."""
    made = scores(6, 0)
    made["group"] = torch.tensor([0.0, 0, 1, 1, 1, -1])
    made["coverage_0.9"] = torch.tensor([1.0, 0, 1, 1, 1, 0])
    names = [{"name": name} for name in ("north", "south")]
    held_out = {"coverage_by_group": {"column": "place", "level": 0.9, "parts": names}}
    found = describe(made, held_out)["coverage_by_group"]
    assert found["column"] == "place"
    parts = [(p["name"], p["rows"], p["coverage"]) for p in found["parts"]]
    assert parts == [("north", 2, 0.5), ("south", 3, 1.0)]
    assert "coverage_by_group" not in describe(made, {})


def test_the_window_is_of_the_last_rows(feedback: Feedback, database: Database) -> None:
    parts = [scores(rows, seed) for seed, rows in enumerate([7, 40, 30, 7, 60, 9])]
    for part in parts:
        rolling = feedback.add("square", 1, part).rolling
    metrics, everything = rolling.metrics, {n: torch.cat([p[n] for p in parts]) for n in parts[0]}
    last = {name: values[-WINDOW:] for name, values in everything.items()}
    assert metrics["rows"] == WINDOW
    for name in ("log_likelihood", "mae", "crps"):
        assert metrics[name] == pytest.approx(last[name].mean().item(), rel=1e-12)
    assert metrics["rmse"] == pytest.approx(last["squared_error"].mean().sqrt().item())
    for level in COVERAGE_LEVELS:
        inside = last[f"coverage_{level:g}"].mean().item()
        assert metrics["coverage"][f"{level:g}"] == pytest.approx(inside)
    assert metrics["expected_log_likelihood"] == HELD_OUT
    assert kept(database) == 4  # 30 of which the last 24 count, 7, 60 and 9
    assert feedback.rolling("square", 1) == rolling
    assert Feedback(database, WINDOW).rolling("square", 1) == rolling


def test_the_labels_of_a_prediction_count_once_and_the_last_ones_hold(feedback: Feedback) -> None:
    other, first, second = scores(5, 0), scores(4, 1), scores(6, 2)
    feedback.add("square", 1, other)
    added = feedback.add("square", 1, first, "pred_1")
    assert (added.is_new, added.new_rows) == (True, 4)
    again = feedback.add("square", 1, first, "pred_1")
    assert (again.id, again.is_new, again.new_rows) == (added.id, False, 0)
    assert again.rolling.metrics == added.rolling.metrics
    more = feedback.add("square", 1, second, "pred_1")
    assert (more.id, more.is_new, more.new_rows) == (added.id, False, 2)
    expected = torch.cat([other["mae"], second["mae"]]).mean().item()
    assert more.rolling.metrics["mae"] == pytest.approx(expected)


def test_corrected_labels_keep_their_place_in_the_window(feedback: Feedback) -> None:
    feedback.add("square", 1, scores(60, 0), "pred_old")
    feedback.add("square", 1, scores(60, 1), "pred_new")
    corrected, new = scores(60, 2), scores(60, 1)
    metrics = feedback.add("square", 1, corrected, "pred_old").rolling.metrics
    expected = torch.cat([corrected["mae"][-40:], new["mae"]]).mean().item()
    assert metrics["mae"] == pytest.approx(expected)


def test_labels_that_come_at_once_are_all_counted(feedback: Feedback) -> None:
    """Of four callers, each labelling one prediction of its own and one that all label."""

    def tell(caller: int) -> None:
        for turn in range(3):
            feedback.add("square", 1, scores(2, turn), f"pred_{caller}_{turn}")
            feedback.add("square", 1, scores(3, 99), "pred_shared")

    at_once(tell, 4)
    assert feedback.rolling("square", 1).metrics["rows"] == 4 * 3 * 2 + 3


def test_a_window_of_an_older_release_counts_the_rows_that_it_has(
    feedback: Feedback, database: Database
) -> None:
    feedback.add("square", 1, scores(40, 0))
    with database.begin() as session:
        window = session.get_one(FeedbackWindowRow, ("square", 1))
        window.metrics = {k: v for k, v in window.metrics.items() if k != "check"}
    check = feedback.add("square", 1, scores(5, 1)).rolling.metrics["check"]
    assert check["labels"] == 45
