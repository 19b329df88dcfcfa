"""Pruning by signal-to-noise ratio, of single weights or of whole units.

Weights are ranked one by one (Blundell et al. 2015, §5.1; Graves 2011). This leaves most units with
a few weights each, and so saves bytes, but little time. What is left after whole units are pruned
is a smaller dense network.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from models.layers.dense import Dense
from models.posteriors.layout import Layout
from models.posteriors.mean_field import MeanFieldNormal

Layers = Sequence[Dense]
Mask = Bool[Tensor, "weights"]


def signal_to_noise(posterior: MeanFieldNormal) -> Float[Tensor, "weights"]:
    """Return |μ|/σ of every weight; −1 for pruned weights, so that they rank below all others."""
    ratio = posterior.loc.abs() / posterior.distribution().scale
    return ratio if posterior.mask is None else torch.where(posterior.mask, ratio, -1.0)


def prune(posterior: MeanFieldNormal, fraction: float) -> MeanFieldNormal:
    """Prune the `fraction` of all weights that has the lowest signal-to-noise ratio.

    The ranking is over all tensors together. Weights that are already pruned stay pruned and
    count towards the fraction. At least one weight is kept.

    Raises:
        ValueError: if the fraction is not in [0, 1).
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"a pruning fraction must be in [0, 1); got {fraction}")
    ratio = signal_to_noise(posterior).detach()
    order = ratio.argsort(stable=True)
    mask = torch.ones_like(ratio, dtype=torch.bool)
    mask[order[: round(fraction * len(order))]] = False
    if posterior.mask is not None:
        mask &= posterior.mask
    return MeanFieldNormal(posterior.loc.detach(), posterior.rho.detach(), mask)


def unit_ratios(
    posterior: MeanFieldNormal, layout: Layout, layers: Layers
) -> list[Float[Tensor, "units"]]:
    """Return the signal-to-noise ratio of each hidden unit, layer by layer.

    It is the root mean square of μ/σ over the unit's incoming and outgoing weights together; pruned
    weights count as 0.

    Args:
        layers: dense layers in order; the outputs of each are the inputs of the next.
    """
    distribution = posterior.distribution()
    squares = distribution.kept((distribution.loc / distribution.scale).square()).detach()
    ratios = layout.unflatten(squares)
    pairs = pairwise(ratios[layer.weight] for layer in layers)
    return [
        ((incoming.sum(1) + outgoing.sum(0)) / (incoming.shape[1] + len(outgoing))).sqrt()
        for incoming, outgoing in pairs
    ]


def prune_units(
    posterior: MeanFieldNormal, layout: Layout, layers: Layers, fraction: float
) -> MeanFieldNormal:
    """Prune the hidden units of lowest ratio until the `fraction` of all weights is pruned.

    Every hidden layer loses the same share of its units, at most all but one. Weights that are
    already pruned stay pruned.

    Raises:
        ValueError: if the fraction is not in [0, 1), or there are no hidden layers.
    """
    if not 0 <= fraction < 1:
        raise ValueError(f"a pruning fraction must be in [0, 1); got {fraction}")
    ratios = unit_ratios(posterior, layout, layers)
    if not ratios:
        raise ValueError("a network without hidden layers has no units to prune")
    orders = [ratio.argsort(stable=True, descending=True) for ratio in ratios]
    most = round((1 - fraction) * layout.num_weights)
    mask = _largest(orders, layout, layers, most)
    if posterior.mask is not None:
        mask &= posterior.mask
    return MeanFieldNormal(posterior.loc.detach(), posterior.rho.detach(), mask)


def _largest(orders: Sequence[Tensor], layout: Layout, layers: Layers, most: int) -> Mask:
    """The mask that keeps the largest share of each layer's units with at most so many weights.

    The number of weights grows with the share, so that bisection finds it.
    """
    widest = max(len(order) for order in orders)
    kept = 1
    for step in reversed(range(widest.bit_length())):
        if (more := kept + 2**step) <= widest:
            mask = _mask(orders, layout, layers, more / widest)
            kept = more if int(mask.sum()) <= most else kept
    return _mask(orders, layout, layers, kept / widest)


def _mask(orders: Sequence[Tensor], layout: Layout, layers: Layers, share: float) -> Mask:
    """Keep this share of each hidden layer's units, the first of its order, and at least one."""
    kept = torch.ones(layout.num_weights, dtype=torch.bool, device=orders[0].device)
    mask = layout.unflatten(kept)  # views
    for order, (layer, following) in zip(orders, pairwise(layers), strict=True):
        dropped = order[max(1, round(share * len(order))) :]
        mask[layer.weight][dropped] = False
        mask[following.weight][:, dropped] = False
        mask[layer.bias][dropped] = False
    return kept
