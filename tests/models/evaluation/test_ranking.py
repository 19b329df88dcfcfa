"""Comparisons of methods whose truth is known."""

import numpy as np
import pytest
import torch
from scipy.stats import studentized_range, ttest_rel
from torch import Tensor

from models.evaluation.ranking import rank, recommend_variant
from models.evaluation.weighting import paired


def test_the_critical_difference_is_tukeys() -> None:
    """Equal variances and no covariance: the studentized range of infinitely many rows, ÷ √2."""
    generator = torch.Generator().manual_seed(0)
    base = torch.linalg.qr(torch.randn(4_000, 6, generator=generator).double()).Q
    base = (
        torch.linalg.qr(base - base.mean(0)).Q * 4_000**0.5
    )  # orthogonal columns of equal variance
    critical = studentized_range.ppf(0.95, 5, np.inf) / 2**0.5
    error = (2 / 4_000) ** 0.5
    for factor, is_worse in ((0.97, False), (1.03, True)):
        scores = [base[:, i] - base[:, i].mean() for i in range(5)]
        scores[0] += factor * critical * error
        found = rank(scores)
        assert found.worse[1:] == (is_worse,) * 4


def normal(seed: int, rows: int = 50) -> Tensor:
    return torch.randn(rows, generator=torch.Generator().manual_seed(seed)).double()


def test_the_difference_and_its_error_are_those_of_the_paired_t_test() -> None:
    ours, theirs = normal(0), normal(1) + 0.3
    found = paired(ours, theirs)
    expected = ttest_rel(ours.numpy(), theirs.numpy())
    assert found.difference == pytest.approx((ours - theirs).mean().item())
    assert found.difference / found.standard_error == pytest.approx(expected.statistic)


def test_a_variant_must_be_certainly_better() -> None:
    """A constant offset has no error; noise of 1 in 50 rows has one of 0.14."""
    full = normal(2)
    noise = normal(3) - normal(3).mean()
    hardly = full + noise + 0.2  # about one and a half standard errors
    assert recommend_variant({0.0: full, 0.5: hardly, 0.9: full - 1}) == (0.0, None)
    best, pair = recommend_variant({0.0: full, 0.5: full + 0.2, 0.9: full + 0.5 + noise})
    assert best == 0.9
    assert pair.difference == pytest.approx(0.5)
