"""The log density ratio against that of a Gaussian, and surprises against their definition."""

import math

import torch
from torch import Tensor

from models.out_of_distribution.density_ratio import Dependence
from models.out_of_distribution.surprise import Tail

RHO = 0.9
COLUMN = torch.arange(3)


def correlated(rows: int, seed: int) -> Tensor:
    """Two columns with correlation 0.9, and one that depends on neither."""
    first, second, third = torch.randn(3, rows, generator=torch.Generator().manual_seed(seed))
    return torch.stack([first, RHO * first + math.sqrt(1 - RHO**2) * second, third], 1)


def true_score(x: Tensor) -> Tensor:
    """log φ(x₀) φ(x₁) − log φ(x₀, x₁)."""
    square = RHO**2 * (x[:, 0] ** 2 + x[:, 1] ** 2) - 2 * RHO * x[:, 0] * x[:, 1]
    return 0.5 * math.log(1 - RHO**2) + square / (2 * (1 - RHO**2))


def test_it_is_the_log_ratio_of_the_densities() -> None:
    """The truth varies by 1.1 nats; the estimate from 2,000 rows is off by some tenths."""
    found, left_out = Dependence.fit(correlated(2_000, 0), COLUMN, seed=0)
    new = correlated(2_000, 1)
    assert torch.corrcoef(torch.stack([found(new), true_score(new)]))[0, 1] > 0.95
    assert (found(new) - true_score(new)).abs().mean() < 0.35
    assert torch.corrcoef(torch.stack([left_out, true_score(correlated(2_000, 0))]))[0, 1] > 0.9


def test_ordinary_values_in_a_strange_combination_score_higher_than_rare_ones() -> None:
    found, _ = Dependence.fit(correlated(2_000, 0), COLUMN, seed=0)
    strange, rare, usual = found(torch.tensor([[1.5, -1.5, 0.0], [2.5, 2.5, 0.0], [0, 0, 0]]))
    assert strange > 5
    assert strange > usual + 5 > rare + 5


def test_the_columns_that_do_not_go_together_contribute() -> None:
    found, _ = Dependence.fit(correlated(2_000, 0), COLUMN, seed=0)
    first, second, third = found.contributions(torch.tensor([[1.5, -1.5, 1.5]]), COLUMN)[0]
    assert min(first, second) > 2
    assert abs(third) < 1


def test_a_surprise_is_minus_log_10_of_the_share_that_scores_as_high() -> None:
    """Of an exponential score it is s/ln 10 at every s, within and beyond the rows.

    The tail's mean excess is known from 500 rows to 4.5 %; three of that beyond its beginning.
    """
    random = torch.Generator().manual_seed(0)
    usual = -torch.log1p(-torch.rand(10_000, generator=random, dtype=torch.float64))
    tail = Tail.fit(usual)
    scores = torch.tensor([0.5, 1.0, 3.0, 6.0, 20.0])
    torch.testing.assert_close(tail(scores), scores.double() / math.log(10), rtol=0.14, atol=0.02)
