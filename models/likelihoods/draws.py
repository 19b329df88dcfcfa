"""Targets drawn from a likelihood with a shape."""

import torch
from jaxtyping import Float
from torch import Tensor

from models.likelihoods.families import Family, Logistic, Student
from models.likelihoods.shaped import ShapedLikelihood

_ROUNDS = 20  # of draws outside the support, which are repeated; then they are moved to its ends


@torch.no_grad()
def draw_targets(
    likelihood: ShapedLikelihood,
    outputs: Float[Tensor, "rows outputs"],
    point: dict[str, Tensor],
    noise: torch.Generator,
) -> Float[Tensor, "rows"]:
    """Return y ~ P(y | outputs) for each row, in the target's units."""
    target, parts = likelihood.target, likelihood.parts(outputs, point)
    shares = torch.cat([parts.log_weights, parts.log_atoms], dim=-1).exp()
    chosen = torch.multinomial(shares, 1, generator=noise)
    component = chosen.clamp_max(likelihood.components - 1)
    loc = parts.locs.gather(1, component)[:, 0]
    scale = parts.log_scales.exp().gather(1, component)[:, 0]

    def latent() -> Tensor:
        return loc + scale * _standard(parts.family, loc, noise)

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
    number = (chosen[:, 0] - likelihood.components).clamp_min(0)
    return torch.where(chosen[:, 0] >= likelihood.components, atoms[number], y)


def _standard(family: Family, like: Float[Tensor, "rows"], noise: torch.Generator) -> Tensor:
    """A draw of the family for each row, at location 0 and scale 1."""
    if isinstance(family, Logistic):
        uniform = torch.rand(like.shape, generator=noise, device=like.device, dtype=like.dtype)
        return torch.logit(uniform, eps=1e-12)
    normal = torch.randn(like.shape, generator=noise, device=like.device, dtype=like.dtype)
    if not isinstance(family, Student):
        return normal
    half = 0.5 * family.dof.flatten()[0].to(like).expand_as(like)
    gamma = torch._standard_gamma(half, generator=noise)  # noqa: SLF001 - alone takes a generator
    return normal * (half / gamma).sqrt()
