"""A ratio that is a third worse than the last release's fails; a slow moment does not."""

import pytest

from benchmarks.ratios.__main__ import verdict
from benchmarks.ratios.comparison import best_of_tries, worse

BEFORE = {"predict": 3.0, "train": 2.0}


def test_a_third_is_the_limit():
    assert worse({"predict": 3.99, "train": 2.0}, BEFORE) == []
    assert worse({"predict": 4.01, "train": 2.7}, BEFORE) == ["predict", "train"]


@pytest.mark.parametrize(("second", "is_good"), [(3.1, True), (4.5, False)])
def test_what_is_worse_is_measured_again_and_the_best_of_three_tries_counts(second, is_good):
    asked = []

    def measure(names):
        asked.append(list(names))
        return {"predict": [5.0, second][len(asked) - 1]}

    now = best_of_tries({"predict": 9.0, "train": 2.0}, BEFORE, measure)
    assert now == {"predict": second, "train": 2.0}
    assert asked == [["predict"], ["predict"]], "only what was worse, three tries in all"
    told = verdict(now, BEFORE)
    assert (told is None) == is_good
    assert is_good or "predict" in str(told)
