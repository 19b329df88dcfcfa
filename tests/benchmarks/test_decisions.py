"""The benchmark of decisions, on a small generated data set."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.decisions.data_sets import CLASSES, DataSet
from benchmarks.decisions.realised import realised


def generated(task: str) -> DataSet:
    random = np.random.default_rng(0)
    x = random.normal(size=(240, 2))
    y = x[:, 0] + 0.5 * random.normal(size=240)
    frame = pd.DataFrame(x, columns=["x0", "x1"])
    target = np.where(y > 0.8, "rare", "usual") if task == CLASSES else y
    return DataSet.split("small", task, frame, target, 160)


def test_costs_of_classes_are_errors_weighed_by_the_ratio() -> None:
    found = realised(generated(CLASSES), 5)
    equal, *_ = found["costs"]
    assert found["rows"] == 80
    assert equal["decisions"] == pytest.approx(equal["usual"])  # equal costs: the likeliest class
    assert 80 * equal["usual"] == pytest.approx(round(80 * equal["usual"]))  # so many errors


def test_costs_of_numbers_are_pinball_losses() -> None:
    dear = realised(generated("regression"), 20)["costs"][-1]
    assert dear["costs"] == "1 over, 20 under"
    assert dear["decisions"] < dear["usual"]
    assert 0.5 < dear["decisions"] / dear["expected"] < 2
