"""SWAG: a Gaussian with the moments of the iterates of SGD at a constant rate, after a fit.

    w ~ N(w̄, ½ diag(s²) + D Dᵀ / (2 (K − 1)))

w̄ and s² are mean and variance over all epochs' ends, D holds the deviations of the last K of them.
They are taken from the final mean (in the paper from the running one): so both halves estimate the
same covariance. Point parameters of the likelihood are part of w here.
Source: Maddox et al. 2019 (arXiv 1902.02476), eq. 1.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import KLConfig
from models.features.rows import Rows
from models.inference.method import FIXED, Method
from models.inference.objectives import Loss
from models.inference.point import DrawsState
from models.posteriors.layout import Layout
from models.tensors import TensorRecord
from models.training.distributed import Part


@dataclass(frozen=True)
class SWAGState(TensorRecord):
    """The present iterate, and what was collected of those before: all values in one vector."""

    iterate: DrawsState
    count: Int[Tensor, ""]
    mean: Float[Tensor, "values"]
    squares: Float[Tensor, "values"]  # of deviations from the mean, summed
    snapshots: Float[Tensor, "rank values"]

    @classmethod
    def begin(cls, iterate: DrawsState, rank: int) -> "SWAGState":
        """Nothing is collected yet."""
        values = flatten(iterate)
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
    def collect(self) -> None:
        """Takes the iterate in: Welford's update, without a difference of large numbers."""
        values = flatten(self.iterate)
        self.snapshots[int(self.count) % len(self.snapshots)] = values
        self.count.add_(1)
        deviation = values - self.mean
        self.mean.add_(deviation / self.count)
        self.squares.add_(deviation * (values - self.mean))

    @property
    def num_noise(self) -> int:
        return len(self.mean) + len(self.snapshots)

    def draws(self, noise: Float[Tensor, "draws noise"]) -> DrawsState:
        """Weight vectors and point parameters from standard normals."""
        halves = noise.to(self.mean).split([len(self.mean), len(self.snapshots)], dim=1)
        names = list(self.iterate.point)
        weights, *point = self.rsample(*halves).split([self.num_weights, *[1] * len(names)], dim=1)
        return DrawsState(weights, dict(zip(names, point, strict=True)))

    def rsample(
        self,
        diagonal: Float[Tensor, "draws values"],
        low_rank: Float[Tensor, "draws rank"],
    ) -> Float[Tensor, "draws values"]:
        """Draws, given standard normals for both halves of the covariance."""
        count = int(self.count)
        kept = min(count, len(self.snapshots))
        deviations = self.snapshots[:kept] - self.mean
        scale = (0.5 * self.squares / count).sqrt()
        spread = low_rank[:, :kept] @ deviations / math.sqrt(2 * (kept - 1))
        return torch.addcmul(self.mean + spread, diagonal, scale)


@dataclass(frozen=True)
class SWAG:
    """Goes on with the loss of a point estimate, and collects."""

    members: ClassVar[int] = 1
    kl: ClassVar[KLConfig] = FIXED

    fit: Method

    @property
    def layout(self) -> Layout:
        return self.fit.layout

    @property
    def num_parameters(self) -> int:
        return self.fit.num_parameters

    def init(self, generator: torch.Generator) -> Any:
        return self.fit.init(generator)

    def loss(
        self,
        state: SWAGState,
        batch: Rows,
        kl_weight: float,
        generator: torch.Generator,
        part: Part | None = None,
    ) -> Loss:
        return self.fit.loss(state.iterate, batch, kl_weight, generator, part)

    def collect(self, state: SWAGState) -> None:
        state.collect()


def flatten(state: DrawsState) -> Float[Tensor, "values"]:
    """The one weight vector and the point parameters behind it."""
    return torch.cat([value.detach().reshape(-1) for value in state.parameters()])
