"""SWAG: a Gaussian with the moments of SGD's iterates at a constant rate, after a fit.

    w ~ N(w̄, ½ diag(s²) + D Dᵀ / (2 (K − 1)))

w̄ and s² are the mean and variance of the collected iterates; the columns of D are the deviations
of K of them, at the ends of epochs. Deviations are from the final mean (in the paper from the
running mean), so that both terms estimate the same covariance. w includes the likelihood's point
parameters. Variances of weights are those of the iterates; half of the covariance is without
correlations, by definition.
Source: Maddox et al. 2019 (arXiv 1902.02476), eq. 1.
"""

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.inference.chains import flat_values
from models.inference.point import DrawsState
from models.tensors import TensorRecord


@dataclass(frozen=True)
class SWAGState(TensorRecord):
    """The current iterate, and moments of the collected ones; all values are in one vector."""

    iterate: DrawsState
    count: Int[Tensor, ""]
    mean: Float[Tensor, "values"]
    squares: Float[Tensor, "values"]  # Σ of squared deviations from the mean
    snapshots: Float[Tensor, "rank values"]

    @classmethod
    def begin(cls, iterate: DrawsState, rank: int) -> "SWAGState":
        """Start from a fit, with nothing collected."""
        values = flat_values(iterate)[0]
        zeros = torch.zeros_like(values)
        count = torch.zeros((), dtype=torch.int64, device=values.device)
        return cls(iterate, count, zeros, zeros.clone(), values.new_zeros(rank, len(values)))

    @property
    def num_weights(self) -> int:
        return self.iterate.num_weights

    @property
    def num_draws(self) -> int | None:
        return None

    @property
    def moments(self) -> list[Tensor]:
        return [self.count, self.mean, self.squares, self.snapshots]

    def parameters(self) -> list[Tensor]:
        return self.iterate.parameters()

    def tensors(self) -> list[Tensor]:
        return [*self.parameters(), *self.moments]

    def pack(self) -> dict[str, Tensor]:
        names = ("count", "mean", "squares", "snapshots")
        moments = {n: t.cpu() for n, t in zip(names, self.moments, strict=True)}
        return {**self.iterate.pack(), **moments}

    @classmethod
    def unpack(cls, tensors: dict[str, Tensor], num_weights: int) -> "SWAGState":
        moments = [tensors[name] for name in ("count", "mean", "squares", "snapshots")]
        return cls(DrawsState.unpack(tensors, num_weights), *moments)

    @torch.no_grad()
    def collect(self, snapshot: int | None = None) -> None:
        """Add the current iterate to the moments by Welford's update, which avoids cancellation.

        Args:
            snapshot: the number of this iterate among those that are kept; None for others.
        """
        values = flat_values(self.iterate)[0]
        if snapshot is not None:
            self.snapshots[snapshot % len(self.snapshots)] = values
        self.count.add_(1)
        deviation = values - self.mean
        self.mean.add_(deviation / self.count)
        self.squares.add_(deviation * (values - self.mean))

    def widened(self, factor: float) -> "SWAGState":
        """A copy whose deviations from the mean are multiplied by the factor."""
        snapshots = self.mean + factor * (self.snapshots - self.mean)
        return replace(self, squares=factor**2 * self.squares, snapshots=snapshots)

    @property
    def num_noise(self) -> int:
        return len(self.mean) + len(self.snapshots)

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        """Return weight vectors and point parameters from standard normals."""
        halves = noise.to(self.mean).split([len(self.mean), len(self.snapshots)], dim=1)
        fitted = self.iterate.point
        sizes = [self.num_weights, *[value.numel() for value in fitted.values()]]
        weights, *point = self.rsample(*halves).split(sizes, dim=1)
        named = zip(fitted.items(), point, strict=True)
        shaped = {k: p.reshape(-1, *old.shape[1:]) for (k, old), p in named}
        return replace(self.iterate, weights=weights, point=shaped)

    def rsample(
        self,
        diagonal: Float[Tensor, "draws values"],
        low_rank: Float[Tensor, "draws rank"],
    ) -> Float[Tensor, "draws values"]:
        """Return draws from standard normals for both terms of the covariance."""
        count = int(self.count)
        kept = min(count, len(self.snapshots))
        deviations = self.snapshots[:kept] - self.mean
        scale = (0.5 * self.squares / count).sqrt()
        spread = low_rank[:, :kept] @ deviations / math.sqrt(2 * (kept - 1))
        return torch.addcmul(self.mean + spread, diagonal, scale)
