"""Targets drawn from a likelihood with a shape."""

import torch
from jaxtyping import Float
from torch import Tensor

from models.features.targets import NumberTarget
from models.likelihoods.families import Family, Logistic
from models.likelihoods.shaped import ShapedLikelihood

_ROUNDS = 20  # of draws outside the support, which are repeated; then they are moved to its ends


@torch.no_grad()
def draw_targets(
    likelihood: ShapedLikelihood,
    outputs: Float[Tensor, "rows outputs"],
    noise: torch.Generator,
) -> Float[Tensor, "rows"]:
    """Return y ~ P(y | outputs) for each row, in the target's units."""
    parts = likelihood.parts(outputs)
    shares = torch.cat([parts.log_weights, parts.log_atoms], dim=-1).exp()
    scales = parts.log_scales.exp()
    return draw(likelihood.target, parts.family, parts.locs, scales, shares, noise)


def draw(  # noqa: PLR0917 - in the order of a mixture's fields
    target: NumberTarget,
    family: Family,
    locs: Float[Tensor, "*points components"],
    scales: Float[Tensor, "*points components"],
    shares: Float[Tensor, "*points parts"],
    noise: torch.Generator,
) -> Float[Tensor, "*points"]:
    """Return a value of the mixture of each point, in the target's units.

    Args:
        shares: the probabilities of the components, then of the target's atoms.
    """
    components = locs.shape[-1]
    chosen = torch.zeros(locs.shape[:-1], dtype=torch.int64, device=locs.device)
    if shares.shape[-1] > 1:
        each = torch.multinomial(shares.flatten(0, -2), 1, generator=noise)
        chosen = each.view(locs.shape[:-1])
    component = chosen.clamp_max(components - 1).unsqueeze(-1)
    loc, scale = (part.gather(-1, component).squeeze(-1) for part in (locs, scales))

    def latent() -> Tensor:
        return loc + scale * _standard(family, loc, noise)

    z = latent()
    if not target.integer:  # whole numbers take what is outside to their ends
        low, high = target.z_bounds
        for _ in range(_ROUNDS if target.is_bounded else 0):
            outside = torch.zeros_like(z, dtype=torch.bool)
            outside |= False if low is None else z < low
            outside |= False if high is None else z > high
            z = torch.where(outside, latent(), z)
    y = target.from_z(z.double())
    y = y.round() if target.integer else y
    if not target.atoms:
        return y
    atoms = y.new_tensor(target.atoms)
    number = (chosen - components).clamp_min(0)
    return torch.where(chosen >= components, atoms[number], y)


def _standard(family: Family, like: Float[Tensor, "*points"], noise: torch.Generator) -> Tensor:
    """A draw of the family for each point, at location 0 and scale 1."""
    if isinstance(family, Logistic):
        uniform = torch.rand(like.shape, generator=noise, device=like.device, dtype=like.dtype)
        return torch.logit(uniform, eps=1e-12)
    return torch.randn(like.shape, generator=noise, device=like.device, dtype=like.dtype)
