"""A loaded model is prepared by few predictions; one that comes back, by one for each variant."""

from typing import Any

import pytest

from app.serving.batching import speed_key
from app.serving.growth import STEP
from app.serving.throughput import Throughput
from app.serving.warm_up import GROWTH_SAMPLES, RUNS, SIZES, warm_up
from benchmarks.shapes import Shape, build
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

pytestmark = pytest.mark.training


def test_the_times_of_a_model_that_comes_back_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    model, throughput = build(Shape.parse("3-8-2"), pruning=(0.5, 0.9)), Throughput()
    predict, calls = TabularModel.predict_rows, []

    def counted(self: TabularModel, *arguments: Any) -> Any:
        calls.append((self, *arguments))
        return predict(self, *arguments)

    monkeypatch.setattr(TabularModel, "predict_rows", counted)
    warm_up("artifact", model, throughput)
    asked = [(len(x), options.samples) for _, x, options in calls[3:]]
    of_sizes, of_growth = asked[: RUNS * len(SIZES)], asked[RUNS * len(SIZES) :]
    assert [rows for rows, _ in of_sizes[::RUNS]] == [rows for rows, _ in SIZES]
    assert {samples for _, samples in of_growth} == {GROWTH_SAMPLES}
    assert [rows for rows, _ in of_growth[: 2 * RUNS]] == [1] * RUNS + [STEP] * RUNS
    keys = [
        speed_key("artifact", model.resolve(PredictOptions(prune=prune)))
        for prune in (0.0, 0.5, 0.9)
    ]
    first, *pruned = (throughput.seconds(key, 1, 100) for key in keys)
    assert first > 0
    assert pruned == [first, first], "a pruned variant is not slower than the full one"
    worth = {throughput.rows_worth_joining(key) for key in keys}
    assert len(worth) == 1, "all variants grow alike"
    calls.clear()
    warm_up("artifact", model, throughput)
    assert len(calls) == 3
