"""Signal-to-noise pruning (Blundell et al. 2015, §5.1; Graves 2011)."""

import torch
from jaxtyping import Float
from torch import Tensor

from models.posteriors.mean_field import MeanFieldNormal


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
