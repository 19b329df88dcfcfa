"""Smaller networks out of pruned ones: units that no longer matter are left out."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from models.networks import MLP

Live = list[Int[Tensor, "_"] | None]


def live_units(network: MLP, mask: Bool[Tensor, "weights"]) -> Live:
    """For inputs, each hidden layer and the outputs: the units that matter; None means all.

    A unit without outgoing weights changes nothing. Nor does one without incoming weights and
    bias: every activation here is 0 at 0. Dropping a unit can make others useless, so that one
    sweep from the outputs to the inputs follows one in the other direction.
    """
    weights = network.layout.unflatten(mask)
    kept = [weights[layer.weight].clone() for layer in network.layers]
    biases = [weights[layer.bias] for layer in network.layers]
    for i in range(len(kept) - 1):
        alive = kept[i].any(1) | biases[i]
        kept[i + 1] &= alive
    for i in reversed(range(len(kept) - 1)):
        kept[i] &= kept[i + 1].any(0).unsqueeze(1)
    return [_indices(kept[0].any(0)), *(_indices(layer.any(0)) for layer in kept[1:]), None]


def _indices(alive: Bool[Tensor, "units"]) -> Int[Tensor, "live"] | None:
    return None if bool(alive.all()) else torch.nonzero(alive).squeeze(1)


def select(noise: Sequence[Tensor], live: Live) -> tuple[Tensor, ...]:
    """The noise of the units that are left."""
    return tuple(
        block if units is None else block[:, units]
        for block, units in zip(noise, live[1:], strict=True)
    )
