"""Risk by coverage of rows whose order and losses are known, and rows that are left to a human."""

import numpy as np
import pytest
import torch

from models.evaluation.abstention import POINTS, risk_coverage
from models.prediction.options import PredictOptions
from models.prediction.prediction import RowPrediction


def test_a_known_order() -> None:
    """40 rows, wrong are the 10 most uncertain: no risk up to 75 %, then (k − 30)/k."""
    uncertainty = torch.arange(40.0).flip(0)
    loss = (uncertainty >= 30).double()
    found = risk_coverage(uncertainty, loss, np.array, torch.ones(len(loss)).double())
    curve = found["risk_coverage"]
    assert [point["coverage"] for point in curve] == pytest.approx(
        np.arange(1, POINTS + 1) / POINTS
    )
    assert [point["threshold"] for point in curve] == list(range(1, 40, 2))
    expected = [max(0, k - 30) / k for k in range(2, 41, 2)]
    assert [point["risk"] for point in curve] == pytest.approx(expected)
    assert found["aurc"] == pytest.approx(np.mean([max(0, k - 30) / k for k in range(1, 41)]))


def test_rows_above_the_bound_are_marked_and_stay() -> None:
    total = np.array([4.0, 9.0, np.inf, np.nan])
    answer = RowPrediction(
        task="regression",
        samples=1,
        seed=0,
        sampler="sobol",
        prune=0.0,
        values={"mean": np.arange(4.0), "total_variance": total},
    )
    marked = answer.abstaining(2.0)
    assert marked["abstained"].tolist() == [False, True, True, True]
    assert marked.mean.tolist() == [0, 1, 2, 3]
    part = marked.select(1, 3, PredictOptions(intervals=()))["abstained"]
    assert part.tolist() == [True, True]
    assert marked.abstaining(None).get("abstained") is None
