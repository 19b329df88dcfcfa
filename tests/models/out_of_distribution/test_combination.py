"""Surprises against their definition; the largest of several."""

import math

import torch

from models.out_of_distribution.combination import MOST, Tail, most_surprising


def test_a_surprise_is_minus_log_10_of_the_share_that_scores_as_high() -> None:
    """Of an exponential score it is s/ln 10 at every s, within and beyond the rows.

    The tail's mean excess is known from 500 rows to 4.5 %; three of that beyond its beginning.
    """
    random = torch.Generator().manual_seed(0)
    usual = -torch.log1p(-torch.rand(10_000, generator=random, dtype=torch.float64))
    tail = Tail.fit(usual)
    scores = torch.tensor([0.5, 1.0, 3.0, 6.0, 20.0])
    torch.testing.assert_close(tail(scores), scores.double() / math.log(10), rtol=0.14, atol=0.02)


def test_it_increases_stays_in_bounds_and_takes_ties_nan_and_infinity() -> None:
    tail = Tail.fit(torch.tensor([0.0] * 90 + [1.0] * 9 + [2.0]))
    found = tail(torch.tensor([-1.0, 0.0, 1.0, 1.5, 2.0, 1e9, math.inf, math.nan]))
    assert (found.diff() >= 0).all()
    assert found[0] == found[1] == tail(torch.tensor([0.0]))[0]
    assert float(found[0]) < 0.01
    assert found[-3:].tolist() == [MOST] * 3


def test_scores_that_never_varied_surprise_by_any_other_value() -> None:
    tail = Tail.fit(torch.ones(50))
    assert tail(torch.tensor([1.0, 1.1])).tolist()[1] == MOST
    assert tail(torch.tensor([1.0]))[0] < 0.1


def test_the_largest_surprise_is_taken() -> None:
    first, second = torch.tensor([1.0, 3.0]), torch.tensor([2.0, 0.0])
    assert most_surprising([first, second]).tolist() == [2.0, 3.0]
