"""The gate against scipy, and its rates of wrong decisions by simulation."""

import numpy as np
import pytest
import scipy.stats
import torch

from models.evaluation.gate import GateConfig, Scores, coverage_bounds, judge

COVERED = 0.9


def scores(log_likelihood: np.ndarray, covered: np.ndarray | None = None) -> Scores:
    hits = np.ones(len(log_likelihood)) if covered is None else covered
    return Scores(torch.from_numpy(log_likelihood), torch.from_numpy(hits.astype(float)))


def test_bounds_of_shares_are_scipys() -> None:
    for hits, rows in ((0, 30), (30, 30), (27, 30), (870, 1000)):
        exact = scipy.stats.binomtest(hits, rows).proportion_ci(0.9, "exact")  # 5 % either side
        found = coverage_bounds(hits / rows, rows)
        assert found == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_the_verdict_is_that_of_scipys_paired_test() -> None:
    """P < 5 % against a mean difference of −max_loss, and only then does it pass."""
    random, max_loss = np.random.default_rng(7), 0.05
    decisions = set()
    for _ in range(30):
        champion = random.normal(-1, 1, 80)
        challenger = champion + random.normal(0.05, 0.4, 80)
        test = scipy.stats.ttest_rel(challenger, champion - max_loss, alternative="greater")
        verdict = judge(scores(challenger), scores(champion), GateConfig(max_loss=max_loss))
        assert verdict.passed == (test.pvalue <= 0.05)
        assert verdict.difference == pytest.approx(np.mean(challenger - champion))
        low, high = scipy.stats.ttest_rel(challenger, champion).confidence_interval(0.9)
        assert (verdict.lower, verdict.upper) == pytest.approx((low, high))
        decisions.add(verdict.passed)
    assert decisions == {True, False}


def test_without_a_champion_coverage_decides() -> None:
    flat = np.zeros(200)
    good = judge(scores(flat, np.arange(200) >= 20), None, GateConfig())
    assert (good.passed, good.difference, good.coverage) == (True, None, pytest.approx(COVERED))
    poor = judge(scores(flat, np.arange(200) >= 60), None, GateConfig())
    assert not poor.passed
    assert "70.0%" in poor.reason
