"""A loaded model is prepared by few predictions; one that comes back, by one for each variant."""

from typing import Any

import numpy as np
import pytest

from app.serving.batching import speed_key
from app.serving.throughput import Throughput
from app.serving.warm_up import warm_up
from benchmarks.shapes import Shape, build
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel


@pytest.mark.parametrize("quick_seconds", [0.0, np.inf])
def test_the_times_of_a_model_that_comes_back_are_known(
    monkeypatch: pytest.MonkeyPatch, quick_seconds: float
) -> None:
    monkeypatch.setattr("app.serving.warm_up.QUICK_SECONDS", quick_seconds)
    model, throughput = build(Shape.parse("3-8-2"), pruning=(0.5, 0.9)), Throughput()
    predict, calls = TabularModel.predict_rows, []

    def counted(self: TabularModel, *arguments: Any) -> Any:
        calls.append(arguments)
        return predict(self, *arguments)

    monkeypatch.setattr(TabularModel, "predict_rows", counted)
    warm_up("artifact", model, throughput)
    variants = [model.resolve(PredictOptions(prune=prune)) for prune in (0.0, 0.5, 0.9)]
    keys = [speed_key("artifact", options) for options in variants]
    first, *pruned = (throughput.seconds(key, 1, 100) for key in keys)
    assert first > 0
    assert pruned == [first, first], "a pruned variant is not slower than the full one"
    assert len({throughput.rows_worth_joining(key) for key in keys}) == 1, "all grow alike"
    calls.clear()
    warm_up("artifact", model, throughput)
    assert len(calls) == 3
