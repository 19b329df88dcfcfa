"""How far images and hashed texts are from the directions in which training rows vary."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from models.randomness import generator
from models.tensors import TensorRecord

_DIRECTIONS = 128
_MOST_WEIGHTS = 131_072  # of all directions: half a megabyte
_ITERATIONS = 3
_SHARE_OF_INPUTS, _ROWS_PER_DIRECTION = 0.25, 8


@dataclass(frozen=True)
class Subspace(TensorRecord):
    """The squared Mahalanobis distance of a Gaussian with q directions of their own variance,

        s(x) = Σ_i (uᵢᵀ(x − μ))²/λᵢ + ‖(I − UUᵀ)(x − μ)‖²/σ²,

    the maximum-likelihood fit of probabilistic principal components (Tipping and Bishop 1999, JRSS
    B 61(3), equations 7 and 8): λ are the largest eigenvalues of the covariance, and σ² is the mean
    of the others.

    Args:
        basis: the unit vectors uᵢ.
        variances: λ.
        noise: σ².
    """

    centre: Float[Tensor, "inputs"]
    basis: Float[Tensor, "inputs directions"]
    variances: Float[Tensor, "directions"]
    noise: Float[Tensor, ""]

    @classmethod
    def fit(cls, x: Float[Tensor, "rows inputs"], seed: int) -> "Subspace":
        """Fit it by subspace iteration (Halko et al. 2011, SIAM Review 53(2), algorithm 4.4)."""
        x = x.float().cpu()
        centre, (rows, inputs) = x.mean(0), x.shape
        count = max(1, min(
            _DIRECTIONS, int(_SHARE_OF_INPUTS * inputs), rows // _ROWS_PER_DIRECTION,
            _MOST_WEIGHTS // inputs,
        ))  # fmt: skip
        moved = x - centre
        basis = torch.randn(inputs, count, generator=generator(seed, "subspace"))
        for _ in range(_ITERATIONS):
            basis = torch.linalg.qr(moved.T @ (moved @ torch.linalg.qr(basis).Q)).Q
        variances, turned = torch.linalg.eigh((moved @ basis).T @ (moved @ basis) / rows)
        left = moved.square().sum(1).mean() - variances.sum()
        tiny = torch.finfo(torch.float32).eps * moved.square().mean() + 1e-12
        noise = (left / max(1, inputs - count)).clamp_min(tiny)
        return cls(centre, basis @ turned, variances.clamp_min(noise), noise)

    def __call__(self, x: Float[Tensor, "rows inputs"]) -> Float[Tensor, "rows"]:
        """The squared distance of each row."""
        moved = x - self.centre
        inside = moved @ self.basis.to(moved)
        left = (moved.square().sum(1) - inside.square().sum(1)).clamp_min(0)
        return (inside.square() / self.variances).sum(1) + left / self.noise
