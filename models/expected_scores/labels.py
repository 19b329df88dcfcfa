"""Labels drawn from predictive distributions: one set for each of many possible worlds.

In world w one sample of the posterior is the truth, for all rows of all data sets. What the labels
of different rows have in common, because the same weights are wrong about them, is so preserved.
"""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from models.likelihoods.shaped import draw
from models.prediction.predictive import CategoricalMixture, Mixture


def draw_labels(
    mixture: Mixture, worlds: int, noise: torch.Generator
) -> Shaped[Tensor, "worlds rows"]:
    """A label of each row in each world: numbers in the target's units, or numbers of classes.

    The worlds divide the samples among themselves as evenly as can be, in their order.
    """
    sample = torch.arange(worlds) * mixture.num_samples // worlds
    if isinstance(mixture, CategoricalMixture):
        return _draw_classes(mixture, sample, noise)
    locs, scales, weights, atoms = (
        part[sample].transpose(1, 2)
        for part in (mixture.locs, mixture.scales, mixture.weights, mixture.atoms)
    )
    shares = torch.cat([weights, atoms], dim=-1)
    return draw(mixture.target, mixture.family, locs, scales, shares, noise)


def _draw_classes(
    mixture: CategoricalMixture, sample: Int[Tensor, "worlds"], noise: torch.Generator
) -> Tensor:
    """The class in whose part of [0, 1] a uniform number lies."""
    ends = mixture.probs[sample].cumsum(-1)
    uniform = torch.rand(ends.shape[:-1], generator=noise, dtype=ends.dtype, device=ends.device)
    chosen = (uniform.unsqueeze(-1) * ends[..., -1:] >= ends).sum(-1)
    return chosen.clamp_max(ends.shape[-1] - 1)
