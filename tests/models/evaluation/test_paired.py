"""Paired differences beside scipy, and the variant that they recommend."""

import math

import pytest
import torch
from scipy.stats import ttest_rel

from models.evaluation.paired import paired
from models.evaluation.ranking import recommend_variant


def scores(seed: int, rows: int = 50) -> torch.Tensor:
    return torch.randn(rows, generator=torch.Generator().manual_seed(seed)).double()


def test_the_difference_and_its_error_are_those_of_the_paired_t_test() -> None:
    ours, theirs = scores(0), scores(1) + 0.3
    found = paired(ours, theirs)
    expected = ttest_rel(ours.numpy(), theirs.numpy())
    assert found.difference == pytest.approx((ours - theirs).mean().item())
    assert found.difference / found.standard_error == pytest.approx(expected.statistic)


def test_one_row_is_never_clear() -> None:
    found = paired(torch.tensor([5.0]), torch.tensor([1.0]))
    assert found.difference == 4
    assert math.isnan(found.standard_error)
    assert not found.is_clear


def test_a_variant_must_be_certainly_better() -> None:
    """A constant offset has no error; noise of 1 in 50 rows has one of 0.14."""
    full = scores(2)
    noise = scores(3) - scores(3).mean()
    hardly = full + noise + 0.2  # about one and a half standard errors
    assert recommend_variant({0.0: full, 0.5: hardly, 0.9: full - 1}) == (0.0, None)
    best, pair = recommend_variant({0.0: full, 0.5: full + 0.2, 0.9: full + 0.5 + noise})
    assert best == 0.9
    assert pair is not None
    assert pair.difference == pytest.approx(0.5)


def test_without_pruned_variants_it_is_the_full_model() -> None:
    assert recommend_variant({0.0: scores(4)}) == (0.0, None)
