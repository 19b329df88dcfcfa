"""A ratio that is a third worse than the last release's fails; a slow moment does not."""

import itertools
import json
import math
from pathlib import Path

import pytest
import torch

from benchmarks.ratios.__main__ import verdict
from benchmarks.ratios.comparison import (
    best_of_tries,
    content,
    is_same_processor,
    released,
    worse,
)
from benchmarks.ratios.measurement import Pair
from benchmarks.ratios.plain import PlainSampling
from benchmarks.shapes import Shape

BEFORE = {"predict": 3.0, "train": 2.0}


def test_a_third_is_the_limit():
    assert worse({"predict": 3.99, "train": 2.0}, BEFORE) == []
    assert worse({"predict": 4.01, "train": 2.7}, BEFORE) == ["predict", "train"]


def test_a_slow_moment_is_measured_again_and_the_best_try_counts():
    asked = []

    def measure(names):
        asked.append(list(names))
        return {"predict": [5.0, 3.1][len(asked) - 1]}

    now = best_of_tries({"predict": 9.0, "train": 2.0}, BEFORE, measure)
    assert now == {"predict": 3.1, "train": 2.0}
    assert asked == [["predict"], ["predict"]], "only what was worse, three tries in all"
    assert verdict(now, BEFORE) is None


def test_what_stays_worse_in_three_tries_is_named():
    tries = itertools.count()

    def measure(names):
        next(tries)
        return {"predict": 4.5}

    now = best_of_tries({"predict": 5.0, "train": 2.0}, BEFORE, measure)
    assert next(tries) == 2
    assert "predict" in str(verdict(now, BEFORE))


@pytest.mark.parametrize("now", [{"predict": 3.0}, {**BEFORE, "new": 1.0}])
def test_a_benchmark_that_has_changed_since_the_release_says_so(now):
    told = str(verdict(now, BEFORE))
    assert "--release" in told
    assert set(now) ^ set(BEFORE) <= set(told.replace(",", " ").replace(":", " ").split())


@pytest.mark.process
def test_only_the_same_kind_of_processor_is_compared(tmp_path: Path):
    here = tmp_path / "here.json"
    here.write_text(json.dumps(content({"predict": 1.0})))
    assert is_same_processor(here)
    other = json.loads(here.read_text())
    other["machine"]["processor"] += " of another kind"
    here.write_text(json.dumps(other))
    assert not is_same_processor(here)


@pytest.mark.process
def test_the_released_ratios_are_kept_with_their_machine():
    before = released()
    assert before
    assert all(0 < ratio < 1000 for ratio in before.values())
    assert content(before)["ratios"] == before


def test_a_machine_that_becomes_slower_leaves_the_ratio_as_it_is():
    calls = itertools.count()

    def seconds(amount: float) -> float:
        return amount * 2.0 ** (next(calls) // 2)  # twice as slow in every round of two

    assert Pair(lambda: seconds(6.0), lambda: seconds(2.0), rounds=5).ratio() == 3.0


def test_plain_sampling_has_the_moments_of_its_linear_layer():
    """One layer: mean xμ and variance x²σ², within five standard errors of 100 samples."""
    plain = PlainSampling.build(Shape.parse("6-1"))
    x = torch.randn(4000, 6, generator=torch.Generator().manual_seed(1))
    mean, variance = plain.moments(x)
    true_mean, true_variance = x @ plain.loc[0], x.square() @ plain.variance[0]
    # Over 4,000 rows: standardised errors 0 ± 1/√4000, ratio of variances 1 ± √(2/99/4000).
    errors = (mean - true_mean) / (true_variance / 100).sqrt()
    assert abs(errors.mean()) < 5 / math.sqrt(4000)
    assert abs((variance / true_variance).mean() - 1) < 5 * math.sqrt(2 / 99 / 4000)
