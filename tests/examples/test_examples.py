"""The examples run from beginning to end, and print what their tables promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHORT = {
    "diabetes_estimator": ("--epochs", "20"),
    "digits_abstain": ("--epochs", "2"),
    "wine_active": ("--epochs", "5", "--rounds", "2", "--starts", "1"),
}


def table(name: str) -> dict[str, list[float]]:
    """What an example prints: the numbers of a line, by how the line begins."""
    ended = subprocess.run(
        [sys.executable, "-m", f"examples.{name}", *SHORT[name]],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    _, *lines = ended.stdout.splitlines()
    cells = [line.split() for line in lines]
    return {first: [float(cell.rstrip("%")) for cell in rest] for first, *rest in cells}


def test_an_estimator_stands_beside_others() -> None:
    printed = table("diabetes_estimator")
    assert set(printed) == {"BayesianRegressor", "BayesianRidge", "GaussianProcessRegressor"}
    _, rmse, covered = printed["BayesianRidge"]
    assert rmse == pytest.approx(55, abs=5)  # as all linear models on these data
    assert 80 <= covered <= 100


def test_who_abstains_more_answers_fewer_rows() -> None:
    answered = [share for share, *_ in table("digits_abstain").values()]
    assert answered == pytest.approx([100, 95, 90, 80], abs=1)


def test_both_ways_start_from_the_same_rows() -> None:
    printed = table("wine_active")
    assert set(printed) == {"12", "16"}
    epistemic, chance = printed["12"]
    assert epistemic == chance < 0
