"""A pass through packed networks by compiled kernels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from models.prediction.compiled.packed import Packed
from models.prediction.fitted import Fitted
from models.prediction.moments import quadrature
from models.prediction.request_noise import RequestNoise
from models.prediction.samplers import Sampled, Share, divide, owners, points

_NOTHING = (2, 0, 0)


@dataclass(frozen=True)
class Outputs:
    """Moments of a network's outputs, and normals to draw them with.

    Args:
        kernels: the module that computed them.
        moments: means and variances.
        noise: of each sample.
        column: of `moments`, for each sample.
        exact: moments of the first output with nothing drawn, without members if unknown.
        shares: the samples of each member.
        are_nodes: whether the samples are nodes of a quadrature.
    """

    kernels: ModuleType
    moments: Float32[np.ndarray, "2 outputs rows columns"]
    noise: Float32[np.ndarray, "outputs samples"]
    column: Int64[np.ndarray, "samples"]
    exact: Float32[np.ndarray, "2 members rows2"]
    shares: Sequence[Share]
    are_nodes: bool = False

    @classmethod
    def of(
        cls, kernels: ModuleType, sampled: Sampled, shares: Sequence[Share], *, are_nodes: bool
    ) -> "Outputs":
        """What torch has computed, for the kernels' summaries."""
        samples, rows, number = sampled.outputs[0].shape
        moments = np.empty((2, number, rows, samples), np.float32)
        for place, part in zip(moments, sampled.outputs, strict=True):
            torch.from_numpy(place).copy_(part.permute(2, 1, 0))
        exact = np.empty(_NOTHING, np.float32)
        if sampled.integrated is not None:
            exact = torch.stack(sampled.integrated)[..., 0].numpy()
        noise = sampled.noise.T.contiguous().numpy()
        return cls(kernels, moments, noise, np.arange(samples), exact, shares, are_nodes)

    @property
    def counts(self) -> tuple[int, ...]:
        """The samples of each member; nodes belong to none."""
        if self.are_nodes:
            return (len(self.column),)
        return tuple(share.count for share in self.shares)

    @property
    def count(self) -> int:
        """The number of samples."""
        return len(self.column)

    def moved(self, moves: Float[Tensor, "samples rows"], locations: int) -> "Outputs":
        """As `Sampled.moved`; each node of a quadrature then has moments of its own."""
        moments = self.moments[..., self.column] if self.are_nodes else self.moments
        moments[0, :locations] += moves.T.numpy()
        return replace(self, moments=moments, column=np.arange(self.count))

    def sampled(self) -> Sampled:
        """The same as tensors."""
        moments = torch.from_numpy(self.moments).permute(0, 3, 2, 1)
        if self.are_nodes:
            moments = moments[:, torch.from_numpy(self.column)]
        exact = torch.from_numpy(self.exact).unsqueeze(-1)
        return Sampled(
            (moments[0], moments[1]),
            torch.from_numpy(self.noise).T,
            (exact[0], exact[1]) if exact.numel() else None,
            points(self.shares),
            None if self.are_nodes else owners(self.shares, moments),
        )


def sample(
    kernels: ModuleType,
    packed: Packed,
    shares: Sequence[Share],
    x: Float[Tensor, "rows inputs"],
    noise: RequestNoise,
    *,
    integrate: bool,
) -> Outputs:
    """As `models.prediction.samplers.sample`."""
    rows, total, counts = len(x), shares[-1].samples.stop, [share.count for share in shares]
    used = {id(share.member.local) for share in shares}
    some = packed.select([m for m, one in enumerate(packed.locals) if id(one) in used])
    moments = np.empty((2, packed.outputs, rows, total), np.float32)
    known = (2, len(counts), rows) if integrate and packed.has_exact else _NOTHING
    exact = np.empty(known, np.float32)
    starts = np.array([0, *accumulate(counts)])
    drawn = noise.packed(packed, shares)
    kernels.sample(*_network(some, x), drawn.hidden, drawn.places, starts, moments, exact)
    return Outputs(kernels, moments, drawn.outputs, np.arange(total), exact, shares)


def propagate(
    kernels: ModuleType,
    packed: Packed,
    members: Sequence[Fitted],
    x: Float[Tensor, "rows inputs"],
    nodes: Float[Tensor, "nodes outputs"],
) -> Outputs:
    """As `models.prediction.samplers.sample_moments`."""
    shares = divide(members, len(nodes))
    moments = np.empty((2, packed.outputs, len(x), len(members)), np.float32)
    kernels.propagate(*_network(packed, x), moments)
    column = np.repeat(np.arange(len(shares)), [share.count for share in shares])
    exact = np.ascontiguousarray(moments[:, 0].swapaxes(1, 2))
    noise = nodes.T.contiguous().numpy()
    return Outputs(kernels, moments, noise, column, exact, shares, are_nodes=True)


def _network(packed: Packed, x: Tensor) -> tuple[object, ...]:
    return (
        x.contiguous().numpy(),
        packed.columns(x.shape[1]),
        packed.shapes,
        packed.depths,
        packed.paths,
        packed.weights,
        packed.activation,
        _quadrature(),
    )


@cache
def _quadrature() -> Float32[np.ndarray, "2 nodes"]:
    return quadrature().astype(np.float32)
