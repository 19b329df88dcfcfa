"""Which rows of a window are tested, when, and against what."""

import numpy as np
import pytest
import torch
from scipy import stats

from core.predictions.window_check import check_window, verdict
from models.evaluation.metrics import COVERAGE_LEVELS, PerRowScores, summarise
from models.evaluation.reliability import MAX_BINS

HELD_OUT = {"rows": 200, "coverage": {"0.5": 0.5, "0.8": 0.8, "0.9": 0.905, "0.95": 0.95}}


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
        looks.append(check_window(window, labels, 1000, [HELD_OUT]))
    tests = [look["coverage"] for look in looks]
    assert all(look["rows"] == 900 for look in looks)
    changed = [i + 1000 for i in range(1, len(tests)) if tests[i] != tests[i - 1]]
    assert set(changed) <= set(range(1100, 1751, 100))
    at = 1600
    inside = every["coverage_0.9"][at - 900 : at].sum().item()
    assert looks[at - 1000 + 57]["coverage"]["0.9"]["inside"] == inside


def test_the_first_window_is_tested_while_it_grows() -> None:
    scores = numbers(250, 0.9)
    assert "coverage" not in check_window(numbers(99, 0.9), 99, 1000, [HELD_OUT])
    assert check_window(scores, 250, 1000, [HELD_OUT])["rows"] == 200


def test_as_few_rows_inside_as_chance_does_not_allow_raise_an_alarm() -> None:
    for share, expected in ((0.9, "as expected"), (0.7, "lower than chance allows")):
        check = check_window(numbers(1000, share), 1000, 1000, [HELD_OUT])
        test = check["coverage"]["0.9"]
        table = [[test["inside"], 900 - test["inside"]], [181, 19]]
        p_value = stats.fisher_exact(table, alternative="less").pvalue
        assert test["p_value"] == pytest.approx(p_value, rel=1e-8)
        assert verdict(check) == expected


def test_the_steps_of_a_forecast_count_as_one_row() -> None:
    check = check_window(numbers(960, 0.5), 960, 1000, [HELD_OUT | {"horizon": 12}])
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
