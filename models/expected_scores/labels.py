"""Labels drawn from predictive distributions: one set for each of many possible worlds.

In world w one sample of the posterior is the truth, for all rows of all data sets. What the labels
of different rows have in common, because the same weights are wrong about them, is so preserved.
"""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from models.likelihoods.draws import draw
from models.prediction.predictive import CategoricalMixture, GaussianMixture, Mixture
from models.prediction.shaped.mixture import ShapedMixture


def draw_labels(
    mixture: Mixture, worlds: int, noise: torch.Generator
) -> Shaped[Tensor, "worlds rows"]:
    """A label of each row in each world: numbers in the target's units, or numbers of classes.

    The worlds divide the samples among themselves as evenly as can be, in their order.

    Raises:
        TypeError: for a mixture whose labels cannot be drawn.
    """
    sample = torch.arange(worlds) * mixture.num_samples // worlds
    match mixture:
        case GaussianMixture():
            means, variances = mixture.means[sample], mixture.variances[sample]
            normal = torch.randn(
                means.shape, generator=noise, dtype=means.dtype, device=means.device
            )
            return means + variances.sqrt() * normal
        case ShapedMixture():
            return _draw_shaped(mixture, sample, noise)
        case CategoricalMixture():
            return _draw_classes(mixture, sample, noise)
    raise TypeError(f"labels of a {type(mixture).__name__} cannot be drawn")


def _draw_shaped(
    mixture: ShapedMixture, sample: Int[Tensor, "worlds"], noise: torch.Generator
) -> Tensor:
    def of_worlds(parts: Tensor) -> Tensor:
        return parts[sample].transpose(1, 2)

    shares = torch.cat([of_worlds(mixture.weights), of_worlds(mixture.atoms)], dim=-1)
    locs, scales = of_worlds(mixture.locs), of_worlds(mixture.scales)
    return draw(mixture.target, mixture.family, locs, scales, shares, noise)


def _draw_classes(
    mixture: CategoricalMixture, sample: Int[Tensor, "worlds"], noise: torch.Generator
) -> Tensor:
    """The class in whose part of [0, 1] a uniform number lies."""
    ends = mixture.probs[sample].cumsum(-1)
    uniform = torch.rand(ends.shape[:-1], generator=noise, dtype=ends.dtype, device=ends.device)
    chosen = (uniform.unsqueeze(-1) * ends[..., -1:] >= ends).sum(-1)
    return chosen.clamp_max(ends.shape[-1] - 1)
