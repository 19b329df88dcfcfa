"""The CRPS of distributions with a shape, ∫ (P(Y ≤ t) − 1{y ≤ t})² dt.

Source: Gneiting and Raftery 2007.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from models.features.targets import NumberTarget
from models.prediction.density_grid import inverse
from models.prediction.shaped.quantiles import Continuous

PerRow = Float[Tensor, "rows"]

_NODES = 96  # evenly spread in z, and as many again evenly spread in probability


@runtime_checkable
class Shaped(Protocol):
    """What the integral reads of a mixture."""

    @property
    def target(self) -> NumberTarget: ...

    @property
    def atoms(self) -> Float[Tensor, "samples atoms rows"]: ...

    @property
    def continuous(self) -> Continuous: ...


def sum_crps(cdf: Callable[[PerRow], PerRow], y: PerRow, start: PerRow, count: int) -> PerRow:
    """The integral of a step function that changes at whole numbers, over `count` of them."""
    total = torch.zeros_like(y)
    for i in range(count):
        k = start + i
        probability, before = cdf(k), (y - k).clamp(0, 1)
        total = total + before * probability.square() + (1 - before) * (1 - probability).square()
    return total


def integrate_crps(of: Shaped, y: PerRow, low: PerRow, high: PerRow) -> PerRow:
    """The integral from `low` to `high`, with the continuous part linear between nodes."""
    target, continuous = of.target, of.continuous
    share = torch.linspace(0, 1, _NODES).to(y).unsqueeze(-1)
    start, stop = target.to_z(low), target.to_z(high)
    even = start + share * (stop - start)
    known = continuous.cdf(even)
    finer = inverse(even, known, share)
    z = torch.cat([even, finer])
    fixed = torch.stack([y, *(torch.full_like(y, atom) for atom in target.atoms)])
    fixed = torch.minimum(torch.maximum(fixed, low), high)
    nodes = torch.cat([target.from_z(z), fixed])
    values = torch.cat([known, continuous.cdf(torch.cat([finer, target.to_z(fixed)]))])
    nodes, order = nodes.sort(0)
    values = values.gather(0, order)
    left, right = values.clone(), values
    for atom, probability in zip(target.atoms, of.atoms.mean(0), strict=True):
        left = left + probability * (nodes > atom)
        right = right + probability * (nodes >= atom)
    after = (nodes[:-1] >= y).to(y)  # whether 1{y ≤ t} is 1 between two nodes
    first, second = right[:-1] - after, left[1:] - after
    squares = (first.square() + first * second + second.square()) / 3
    return (squares * (nodes[1:] - nodes[:-1])).sum(0)
