"""The demo's own arithmetic, on answers small enough to score by hand."""

from typing import Any

import numpy as np
import pytest

from credence.types import Interval, PredictionAnswer
from examples.demo_parts import scores


def answer(**fields: Any) -> PredictionAnswer:
    return fields  # type: ignore[return-value]


def test_regression_scores() -> None:
    truth = np.array([1.0, 2.0])
    assert scores.rmse(answer(mean=[1.0, 4.0]), truth) == pytest.approx(2**0.5)
    interval: Interval = {
        "level": 0.9,
        "kind": "credible",
        "lower": [0.0, 2.5],
        "upper": [2.0, 5.0],
    }
    assert scores.coverage(interval, truth) == 0.5


def test_class_scores() -> None:
    probabilities = [[0.95, 0.05], [0.96, 0.04], [0.4, 0.6]]
    prediction = answer(labels=[3, 3, 7], classes=[3, 7], probabilities=probabilities)
    truth = np.array([3, 7, 7])
    assert scores.error(prediction, truth) == pytest.approx(1 / 3)
    expected = np.log([0.95, 0.04, 0.6]).mean()
    assert scores.log_likelihood(prediction, truth) == pytest.approx(expected)
    bins = scores.reliability(prediction, truth)
    assert bins.count.tolist() == [1, 2]
    assert bins.confidence == pytest.approx([0.6, 0.955])
    assert bins.accuracy == pytest.approx([1.0, 0.5])
