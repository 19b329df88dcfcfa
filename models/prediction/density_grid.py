"""Grids of values on which a row's density is drawn, and the inverse of a tabulated function."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

PerRow = Float[Tensor, "rows"]
Nodes = Float[Tensor, "nodes rows"]

TAIL = 1e-3  # probability of each tail that a grid leaves out
_ROUNDS = 3  # each finds a peak that is about a dozen times narrower


def even_grid(low: PerRow, high: PerRow, count: int) -> Nodes:
    """So many values from `low` to `high`, evenly spread."""
    share = torch.linspace(0, 1, count).to(low).unsqueeze(-1)
    return low + share * (high - low)


def following_grid(cdf: Callable[[Nodes], Nodes], low: PerRow, high: PerRow, points: int) -> Nodes:
    """Increasing values from `low` to `high`: half evenly spread, half of equal probability.

    The former show the tails, the latter narrow peaks.
    """
    even = even_grid(low, high, max(2, points - points // 2))
    count = points - len(even)
    if not count:
        return even
    share = ((torch.arange(count) + 0.5) / count).to(low).unsqueeze(-1)
    nodes, values = even, cdf(even)
    for _ in range(_ROUNDS - 1):
        finer = inverse(nodes, values, share)
        nodes, order = torch.cat([nodes, finer]).sort(0)
        values = torch.cat([values, cdf(finer)]).gather(0, order)
    return torch.cat([even, inverse(nodes, values, share)]).sort(0).values


def inverse(z: Nodes, values: Nodes, share: Float[Tensor, "some 1"]) -> Float[Tensor, "some rows"]:
    """z at which increasing values, interpolated linearly, reach a share of their range."""
    wanted = values[0] + share * (values[-1] - values[0])
    index = torch.searchsorted(values.T.contiguous(), wanted.T.contiguous()).T
    index = index.clamp(1, len(z) - 1)
    before, after = values.gather(0, index - 1), values.gather(0, index)
    part = ((wanted - before) / (after - before).clamp(min=1e-300)).clamp(0, 1)
    below = z.gather(0, index - 1)
    return below + part * (z.gather(0, index) - below)


def whole_grid(
    low: PerRow, high: PerRow, points: int, lower: float | None, upper: float | None
) -> Float[Tensor, "points rows"]:
    """Whole numbers from `low` to `high`: all of them, with others around, or evenly spread ones.

    Args:
        lower, upper: the support, which others leave only if it has fewer numbers than points.
    """
    spare = (points - 1 - (high - low)).clamp(min=0)
    start = low - (spare / 2).floor()
    start = start if upper is None else start.clamp(max=upper - points + 1)
    start = start if lower is None else start.clamp(min=lower)
    each = start + torch.arange(points).to(low).unsqueeze(-1)
    return torch.where(spare > 0, each, even_grid(low, high, points).round())
