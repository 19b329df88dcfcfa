"""A loaded model is prepared by few predictions; one that comes back, by one for each variant."""

from typing import Any

import numpy as np
import pytest

from app.serving.batching import speed_key
from app.serving.growth import STEP
from app.serving.throughput import Throughput
from app.serving.warm_up import ANSWER_SAMPLES, GROWTH_SAMPLES, RUNS, SIZES, warm_up
from benchmarks.shapes import Shape, build
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

pytestmark = pytest.mark.training


@pytest.mark.parametrize("is_quick", [False, True])
def test_the_times_of_a_model_that_comes_back_are_known(
    monkeypatch: pytest.MonkeyPatch, *, is_quick: bool
) -> None:
    monkeypatch.setattr("app.serving.warm_up.QUICK_SECONDS", np.inf if is_quick else 0.0)
    model, throughput = build(Shape.parse("3-8-2"), pruning=(0.5, 0.9)), Throughput()
    predict, calls = TabularModel.predict_rows, []

    def counted(self: TabularModel, *arguments: Any) -> Any:
        calls.append((self, *arguments))
        return predict(self, *arguments)

    monkeypatch.setattr(TabularModel, "predict_rows", counted)
    warm_up("artifact", model, throughput)
    asked = [(len(x), options.samples) for _, x, options in calls[3:]]
    default = model.resolve(PredictOptions())
    # The time of 100 samples bounds that of fewer, but not that of another sampler.
    others = [(rows, samples or default.samples) for rows, samples in SIZES for _ in range(RUNS)]
    if is_quick:
        is_closed = default.sampler == "moments"
        others = [(64, 10), (1, default.samples)] if is_closed else [(64, 10)]
    # with the default answers and with many quantiles; at last, what a call takes by itself
    answers = [(STEP, ANSWER_SAMPLES if is_quick else GROWTH_SAMPLES)] * 2 * RUNS + [(1, 1)] * RUNS
    growth = [rows for rows, _ in asked[: len(asked) - len(others) - len(answers)]]
    assert growth[: 2 * RUNS] == [1] * RUNS + [STEP] * RUNS
    assert {samples for _, samples in asked[: len(growth)]} == {GROWTH_SAMPLES}
    assert asked[len(growth) :] == [*others, *answers]
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
