"""Labels: the window of a version, adaptive levels, and the test of the window."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
import sqlalchemy as sa
import torch
from scipy import stats

from core.clock import now
from core.database.database import Database
from core.database.schema import FeedbackRow, FeedbackWindowRow, ModelRow, PredictionRow
from core.predictions.adaptation import labels_of
from core.predictions.feedback import Feedback, describe
from core.predictions.window_check import check_window, verdict
from models.evaluation.adaptive import adapt
from models.evaluation.conformal_rank import Reference
from models.evaluation.metrics import CONFORMAL_SCORE, COVERAGE_LEVELS, PerRowScores, summarise
from models.evaluation.reliability import MAX_BINS
from tests.core.conftest import NAMES, at_once, version_row

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


def test_an_older_window_counts_its_rows(feedback: Feedback, database: Database) -> None:
    feedback.add("square", 1, scores(40, 0))
    with database.begin() as session:
        window = session.get_one(FeedbackWindowRow, ("square", 1))
        window.metrics = {k: v for k, v in window.metrics.items() if k != "check"}
    check = feedback.add("square", 1, scores(5, 1)).rolling.metrics["check"]
    assert check["labels"] == 45


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
REFERENCE = Reference(np.linspace(0.01, 3, 200), np.ones(200))


@pytest.fixture
def minutely(database: Database) -> Feedback:
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


def conformal_scores(*values: float) -> PerRowScores:
    """Scores of rows, with an uncalibrated prediction's names and the conformal scores."""
    rows = torch.tensor(values, dtype=torch.float64)
    found = {name: torch.ones_like(rows) for name in NAMES} | {CONFORMAL_SCORE: rows}
    for level in COVERAGE_LEVELS:
        found |= {f"coverage_{level:g}": torch.ones_like(rows)}
        found |= {f"width_{level:g}": torch.ones_like(rows)}
    return found


def send(minutely: Feedback, number: int, *values: float) -> dict[str, dict[str, float]]:
    given = conformal_scores(*values) if values else conformal_scores(number, number + 0.5)
    added = minutely.add("square", 1, given, f"pred_{number}", REFERENCE)
    metrics: dict[str, dict[str, float]] = added.rolling.metrics
    return metrics


def in_order(minutely: Feedback) -> tuple[float, ...]:
    return minutely.labels("square", 1).scores


@pytest.mark.parametrize("order", [(0, 1, 2, 2), (2, 0, 1, 0), (1, 1, 2, 0)])
def test_labels_follow_their_predictions(minutely: Feedback, order: tuple[int, ...]) -> None:
    """However they arrive: late, twice, or one after the other."""
    expected = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
    for number in order:
        metrics = send(minutely, number)
    assert in_order(minutely) == expected
    labels = minutely.labels("square", 1)
    levels = [one.adapted for one in adapt(REFERENCE, labels, COVERAGE_LEVELS)]
    assert list(metrics["adapted_level"].values()) == levels


def test_replicas_that_add_at_once_lose_no_label(minutely: Feedback) -> None:
    at_once(lambda i: send(minutely, i, float(i)), 8)
    assert in_order(minutely) == tuple(map(float, range(8)))


def test_rows_without_a_prediction_count_from_when_they_came(
    minutely: Feedback,
) -> None:
    minutely.add("square", 1, conformal_scores(7.0), None, REFERENCE)
    send(minutely, 3)
    assert in_order(minutely) == (3.0, 3.5, 7.0)


def test_scores_of_the_first_release_stand_beside_new_ones(minutely: Feedback) -> None:
    """It stored no conformal scores."""
    old = conformal_scores(1.0)
    del old[CONFORMAL_SCORE]
    minutely.add("square", 1, old)
    added = minutely.add("square", 1, conformal_scores(2.0, 3.0), None, REFERENCE)
    assert in_order(minutely) == (2.0, 3.0)
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


HELD_OUT_METRICS = {"rows": 200, "coverage": {"0.5": 0.5, "0.8": 0.8, "0.9": 0.905, "0.95": 0.95}}


def numbers(rows: int, inside: float, seed: int = 0) -> PerRowScores:
    covered = np.random.default_rng(seed).random(rows) < inside
    return {f"coverage_{q:g}": torch.from_numpy(covered).double() for q in COVERAGE_LEVELS}


def classes(rows: int, bias: float, seed: int = 0) -> PerRowScores:
    """Scores of a classifier that is right with a probability of its confidence − bias."""
    random = np.random.default_rng(seed)
    confidence = random.uniform(0.5, 1, rows)
    correct = random.random(rows) < confidence - bias
    names = ("log_likelihood", "brier", "epistemic_share", "uncertainty")
    return {name: torch.zeros(rows) for name in names} | {
        "confidence": torch.from_numpy(confidence),
        "correct": torch.from_numpy(correct).double(),
    }


def test_the_test_changes_only_after_every_hundred_labels() -> None:
    every = numbers(1750, 0.85)
    looks = []
    for labels in range(1000, 1751):
        window = {name: values[labels - 1000 : labels] for name, values in every.items()}
        looks.append(check_window(window, labels, 1000, [HELD_OUT_METRICS]))
    tests = [look["coverage"] for look in looks]
    assert all(look["rows"] == 900 for look in looks)
    changed = [i + 1000 for i in range(1, len(tests)) if tests[i] != tests[i - 1]]
    assert set(changed) <= set(range(1100, 1751, 100))
    at = 1600
    inside = every["coverage_0.9"][at - 900 : at].sum().item()
    assert looks[at - 1000 + 57]["coverage"]["0.9"]["inside"] == inside


def test_the_first_window_is_tested_while_it_grows() -> None:
    window = numbers(250, 0.9)
    assert "coverage" not in check_window(numbers(99, 0.9), 99, 1000, [HELD_OUT_METRICS])
    assert check_window(window, 250, 1000, [HELD_OUT_METRICS])["rows"] == 200


def test_as_few_rows_inside_as_chance_does_not_allow_raise_an_alarm() -> None:
    for share, expected in ((0.9, "as expected"), (0.7, "lower than chance allows")):
        check = check_window(numbers(1000, share), 1000, 1000, [HELD_OUT_METRICS])
        test = check["coverage"]["0.9"]
        table = [[test["inside"], 900 - test["inside"]], [181, 19]]
        p_value = stats.fisher_exact(table, alternative="less").pvalue
        assert test["p_value"] == pytest.approx(p_value, rel=1e-8)
        assert verdict(check) == expected


def test_the_steps_of_a_forecast_count_as_one_row() -> None:
    check = check_window(numbers(960, 0.5), 960, 1000, [HELD_OUT_METRICS | {"horizon": 12}])
    test = check["coverage"]["0.9"]
    assert (test["rows"], test["held_out_rows"], test["held_out_inside"]) == (75, 16, 14)


def test_classes_are_compared_with_held_out_rows_of_equal_confidence() -> None:
    held_out = summarise(classes(400, 0.1, seed=1))
    assert len(held_out["confidence_counts"]) == MAX_BINS
    assert sum(rows for rows, _ in held_out["confidence_counts"]) == 400
    alike = check_window(classes(1000, 0.1), 1000, 1000, [held_out])
    assert verdict(alike) == "as expected"
    for bias in (-0.05, 0.3):  # under- and overconfident beside the held-out rows
        other = check_window(classes(1000, bias), 1000, 1000, [held_out])
        assert verdict(other) == "other than chance allows"


def test_classes_of_an_older_release_are_compared_by_their_accuracy() -> None:
    held_out = {"rows": 400, "accuracy": 0.75}
    test = check_window(classes(1000, 0.0), 1000, 1000, [held_out])["calibration"]
    table = [[test["correct"], 900 - test["correct"]], [300, 100]]
    fewer = stats.fisher_exact(table, alternative="less").pvalue
    more = stats.fisher_exact(table, alternative="greater").pvalue
    assert test["p_value"] == pytest.approx(min(1, 2 * min(fewer, more)), rel=1e-8)


def test_without_held_out_metrics_there_is_no_test_and_no_verdict() -> None:
    diverged = {"rows": 50, "coverage": {f"{q:g}": None for q in COVERAGE_LEVELS}}
    for held_out in ([], [diverged]):
        check = check_window(numbers(500, 0.9), 500, 1000, held_out)
        assert check.keys() == {"labels", "rows", "alarm_p_value"}
        assert verdict(check) is None
    assert verdict({}) is None
