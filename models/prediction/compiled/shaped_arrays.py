"""Outputs and likelihoods with a shape as the arrays that kernels read, and mixtures by kernels."""

import math
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64

from models.features.scales import IdentityScale, LogScale
from models.features.targets import NumberTarget
from models.likelihoods.components import FEW_NODES, MAX_SUMMED, legendre
from models.likelihoods.families import FAMILIES
from models.likelihoods.shaped import Bounded, ShapedLikelihood
from models.prediction.compiled.packed import errors
from models.prediction.fitted import Sampled

_NUMBERED = ("logistic", "normal")  # in the order of the kernels' numbers

_UNKNOWN = np.empty((2, 0, 0), np.float32)

Limits = tuple[float, float, float, float]
PerComponent = Float64[np.ndarray, "rows components samples"]


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
            _UNKNOWN if exact is None else exact[..., 0].contiguous().numpy(),
            sampled.counts,
        )


@dataclass(frozen=True, eq=False)
class Shape:
    """A likelihood as `shaped_kernels` read it.

    Args:
        likelihood: as of `shaped_kernels.parts`.
        target, edges, is_closed: as of `shaped_kernels.shaped`.
        bounds, cuts, ends: as of `shaped_kernels.quantiles`.
    """

    components: int
    family: int
    likelihood: tuple[Float64[np.ndarray, "components"], float, float, Limits, Limits]
    target: tuple[int, float, float, float, float, float, bool, bool, float]
    edges: Float64[np.ndarray, "_"]
    is_closed: bool
    atoms: Float64[np.ndarray, "atoms"]
    bounds: tuple[float, float]
    cuts: Float64[np.ndarray, "atoms 3"]
    ends: tuple[float, float, bool]

    @classmethod
    def of(cls, likelihood: object) -> "Shape | None":
        """None for likelihoods that kernels do not compute."""
        if not isinstance(likelihood, ShapedLikelihood) or likelihood.family not in _NUMBERED:
            return None
        target, scale = likelihood.target, likelihood.target.scale
        if not isinstance(scale, IdentityScale | LogScale):
            return None
        is_log = isinstance(scale, LogScale)
        shift = scale.lower - scale.offset if isinstance(scale, LogScale) else 0.0
        low, high = target.z_extremes
        read = int(is_log), target.mean, target.std, shift, low, high, *_is_cut(target)
        lower, upper = (None, None) if target.integer else target.z_bounds
        return cls(
            likelihood.components,
            _NUMBERED.index(likelihood.family),
            _of_likelihood(likelihood),
            (*read, FAMILIES[likelihood.family].reach),
            _edges(target),
            not is_log and not target.integer and not target.is_bounded,
            np.array(target.atoms),
            _ends(lower, upper),
            _cuts(target),
            (*_ends(target.lower, target.upper), target.integer),
        )


@dataclass(frozen=True)
class Components:
    """The calibrated mixture of each row, and mean, aleatoric, epistemic variance and error.

    Args:
        atoms: probabilities of no atom, then of each.
    """

    kernels: ModuleType
    shape: Shape
    moments: Float64[np.ndarray, "4 rows"]
    locs: PerComponent
    scales: PerComponent
    weights: PerComponent
    atoms: Float64[np.ndarray, "rows atoms samples"]

    @classmethod
    def of(
        cls, outputs: Outputs, shape: Shape, factor: float, *, even: bool
    ) -> "Components | None":
        """The mixtures that outputs describe; None if something is not finite.

        Args:
            factor: of the calibration, on variances on z.
            even: whether the samples are successive points of a sequence.
        """
        rows, count = outputs.moments.shape[2], len(outputs.column)
        locs, scales, weights = np.empty((3, rows, shape.components, count))
        atoms, moments = np.empty((rows, 1 + len(shape.atoms), count)), np.empty((4, rows))
        is_fine = outputs.kernels.shaped(
            outputs.moments,
            outputs.noise,
            outputs.column,
            shape.family,
            shape.likelihood,
            factor,
            shape.target,
            _nodes(),
            shape.edges,
            shape.is_closed,
            shape.atoms,
            errors(outputs.counts, even=even),
            moments,
            locs,
            scales,
            weights,
            atoms,
        )
        if not is_fine:
            return None
        return cls(outputs.kernels, shape, moments, locs, scales, weights, atoms)

    def quantiles(
        self, levels: Float64[np.ndarray, "levels rows"]
    ) -> Float64[np.ndarray, "levels rows"]:
        """As `NumberMixture.quantiles_at`."""
        found, shape = np.empty(levels.shape), self.shape
        self.kernels.quantiles(
            shape.family,
            self.locs,
            self.scales,
            self.weights,
            self.atoms,
            shape.bounds,
            shape.cuts,
            levels,
            shape.target,
            shape.ends,
            found,
        )
        return found


def _of_likelihood(
    likelihood: ShapedLikelihood,
) -> tuple[Float64[np.ndarray, "components"], float, float, Limits, Limits]:
    starts, start_scale, start_atom = likelihood.start
    of_locs, of_scales = likelihood.location_bounds, likelihood.scale_bounds
    return np.array(starts), start_scale, start_atom, _limits(of_locs), _limits(of_scales)


def _limits(of: Bounded) -> Limits:
    return of.low_limit, of.low, of.high, of.high_limit


def _ends(lower: float | None, upper: float | None) -> tuple[float, float]:
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


def _is_cut(target: NumberTarget) -> tuple[bool, bool]:
    lower, upper = (bound is not None and not target.integer for bound in target.z_bounds)
    return lower, upper


def _edges(target: NumberTarget) -> Float64[np.ndarray, "_"]:
    """The lowest whole number and the edges, if moments are sums; else empty."""
    if not target.integer:
        return np.zeros(0)
    low, high = target.whole_numbers
    return np.array([low, *target.whole_edges]) if high - low <= MAX_SUMMED else np.zeros(0)


def _cuts(target: NumberTarget) -> Float64[np.ndarray, "atoms 3"]:
    """As `NumberMixture.cdf_before` of each atom."""
    cuts = np.full((len(target.atoms), 3), math.nan)
    low, high = _ends(target.lower, target.upper)
    for cut, atom in zip(cuts, target.atoms, strict=True):
        edge = math.ceil(atom) - 0.5 if target.integer else atom
        inside = torch.tensor(min(max(edge, low), high), dtype=torch.float64)
        cut[:2] = atom, float(target.to_z(inside))
        if atom <= low or atom > high:
            cut[2] = float(atom > high)
    return cuts


@cache
def _nodes() -> Float32[np.ndarray, "2 nodes"]:
    return np.array(legendre(FEW_NODES), np.float32)
