"""A pass through packed networks by compiled kernels."""

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor

from models.prediction.compiled.packed import Packed
from models.prediction.fitted import Fitted, Sampled
from models.prediction.local import quadrature
from models.prediction.noise import RequestNoise

_NOTHING = (2, 0, 0)


@dataclass(frozen=True)
class Outputs:
    """`Sampled` as the plain arrays that compiled summaries read.

    Args:
        kernels: the module of these.
        moments: means and variances.
        noise: of each sample.
        column: of `moments`, for each sample.
        exact: moments of the first output with nothing drawn, without members if unknown.
        counts: the samples of each member.
    """

    kernels: ModuleType
    moments: Float32[np.ndarray, "2 outputs rows columns"]
    noise: Float32[np.ndarray, "outputs samples"]
    column: Int64[np.ndarray, "samples"]
    exact: Float32[np.ndarray, "2 members rows2"]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, kernels: ModuleType, sampled: Sampled) -> "Outputs":
        assert sampled.noise is not None
        exact, column = sampled.integrated, sampled.column
        return cls(
            kernels,
            sampled.moments.permute(0, 3, 2, 1).contiguous().numpy(),
            sampled.noise.T.contiguous().numpy(),
            np.arange(len(sampled.noise)) if column is None else column.numpy(),
            np.empty(_NOTHING, np.float32) if exact is None else exact[..., 0].contiguous().numpy(),
            sampled.counts,
        )


def outputs(
    kernels: ModuleType,
    fitted: Fitted,
    x: Float[Tensor, "rows inputs"],
    noise: RequestNoise,
    *,
    samples: int,
    nodes: Float[Tensor, "nodes outputs"] | None,
    integrate: bool,
) -> Sampled | None:
    """As `Fitted.sample`, or with nodes as `Fitted.propagate`; None if torch is to compute it."""
    packed, rows = fitted.packed, len(x)
    if packed is None:
        return None
    if nodes is not None:
        moments = np.empty((2, packed.outputs, rows, fitted.members), np.float32)
        kernels.propagate(*_network(packed, x), moments)
        return fitted.of_nodes(torch.from_numpy(moments).permute(0, 3, 2, 1), nodes)
    shares = fitted.shares(samples)
    counts = [share.stop - share.start for share in shares]
    used = np.flatnonzero(counts)
    moments = np.empty((2, packed.outputs, rows, samples), np.float32)
    known = (2, len(used), rows) if integrate and packed.has_exact else _NOTHING
    exact = np.empty(known, np.float32)
    starts = np.array([0, *accumulate(counts[m] for m in used)])
    hidden, places, normals = packed.noise(shares, noise)
    network = _network(packed, x, used if len(used) < len(counts) else None)
    kernels.sample(*network, hidden, places, starts, moments, exact)
    return Sampled(
        torch.from_numpy(moments).permute(0, 3, 2, 1),
        torch.from_numpy(normals).T,
        tuple(counts[m] for m in used),
        integrated=torch.from_numpy(exact).unsqueeze(-1) if exact.size else None,
        point=fitted.points(samples),
    )


def _network(
    packed: Packed, x: Tensor, members: Int64[np.ndarray, "used"] | None = None
) -> tuple[object, ...]:
    """The arguments of the kernels that describe the networks, of some members or of all."""
    columns = packed.columns(x.shape[1])
    of_members = columns, packed.shapes, packed.depths, packed.paths
    if members is not None:
        of_members = tuple(one[members] for one in of_members)
    return (
        x.contiguous().numpy(),
        *of_members,
        packed.weights,
        packed.activation,
        _quadrature(),
    )


@cache
def _quadrature() -> Float32[np.ndarray, "2 nodes"]:
    return quadrature().astype(np.float32)
