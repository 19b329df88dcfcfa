"""The examples run from beginning to end, and print what their tables promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.stack, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
SHORT = {
    "diabetes_estimator": ("--epochs", "20"),
    "digits_abstain": ("--epochs", "2"),
    "wine_active": ("--epochs", "5", "--rounds", "2", "--starts", "1"),
}


def printed_by(name: str, *options: str) -> list[str]:
    """Lines that an example prints."""
    command = [sys.executable, "-m", f"examples.{name}", *SHORT.get(name, ()), *options]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    return ended.stdout.splitlines()


def table(name: str) -> dict[str, list[float]]:
    """The numbers of each line, by how the line begins."""
    _, *lines = printed_by(name)
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


def costs(name: str, picture: Path) -> dict[str, float]:
    """The mean cost of each way to decide; the example also draws its picture."""
    lines = printed_by(name, "--picture", str(picture))
    assert picture.read_text().startswith("<?xml")
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    return {row[0]: float(row[1]) for row in rows if len(row) == 4 and row[3].endswith("%")}


def test_stock_that_follows_the_uncertainty_costs_least(tmp_path: Path) -> None:
    paid = costs("bakery_stock", tmp_path / "stock.svg")
    assert paid["uncertainty of the day"] < paid["mean + same reserve"] < paid["mean"]


def test_a_classifier_that_may_abstain_costs_least(tmp_path: Path) -> None:
    paid = costs("tumour_triage", tmp_path / "triage.svg")
    assert paid["costs, may abstain"] < paid["most probable class"]


def test_samples_where_rows_are_unlike_training_cost_least(tmp_path: Path) -> None:
    paid = costs("drifting_sensor", tmp_path / "sensor.svg")
    assert paid["samples where unlike"] < paid["samples at random"] < paid["trust all"]
