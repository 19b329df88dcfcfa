"""The regression that all classical members are, and what else they share.

Given its other parameters, each member is a linear regression of values y on terms X,

    y = X β + e,      e ~ N(0, σ² I),      β_j ~ N(0, σ² τ_j²),      1/σ² ~ Gamma(ν₀/2, ν₀ s₀²/2)

Its posterior is a normal inverse gamma distribution (Gelman et al. 2013, Bayesian Data Analysis,
§14.8):

    β | σ² ~ N(m, σ² V),  V = (XᵀX + diag(τ)⁻²)⁻¹,  m = V Xᵀy,      σ² ~ ν s² ÷ χ²_ν
    ν = ν₀ + n,      ν s² = ν₀ s₀² + yᵀy − mᵀXᵀy.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Bool, Float64, Int
from pydantic import Field
from torch import Tensor

from models.forecasting.rollout import Paths
from models.prediction.pauses import Pause, go_on

_ADAPTING = 8  # rows that a member adapts to
_NOISE, _NOISE_COUNT = 0.5, 2.0  # s₀² and ν₀
# Standard deviations of the priors, in units of the standard deviation of changes. Wide: a few
# seasons of data outweigh them.
LAG, LEVEL, DRIFT = 0.5, 10.0, 0.3

FEW = 12  # sines and cosines of a season, usually

Season = Annotated[int, Field(strict=True, ge=1, le=10_000)]

Shorter = Annotated[tuple[Season, ...], Len(0, 2)]

Values = Float64[Tensor, "rows steps"]
"""u of each history, the latest value last; NaN where it is missing, and before it begins."""

Products = Float64[Tensor, "*rows both both"]
"""XᵀX, and in the last row and column Xᵀy and yᵀy."""


@dataclass(frozen=True)
class PathRequest:
    """How many sample paths to draw.

    Args:
        draws: of the parameters.
        paths: per draw.
        pause: called before each step that is read or drawn.
    """

    horizon: int
    draws: int
    paths: int
    seed: int
    pause: Pause = field(default=go_on, compare=False)


@dataclass(frozen=True)
class Regression:
    """The posterior of β and σ².

    Args:
        mean: m.
        root: V = root rootᵀ.
        known: how much the data determine each β, from 0 to 1: 1 − posterior ÷ prior variance.
        noise: s².
        freedom: ν.
        log_evidence: the log density of y, up to a constant that depends on n and τ alone.
        failed: where the products are not finite; the other numbers are then of no use.
    """

    mean: Float64[Tensor, "*rows terms"]
    root: Float64[Tensor, "*rows terms terms"]
    known: Float64[Tensor, "*rows terms"]
    noise: Float64[Tensor, "*rows"]
    freedom: Float64[Tensor, "*rows"]
    log_evidence: Float64[Tensor, "*rows"]
    failed: Bool[Tensor, "*rows"]

    @classmethod
    def of(
        cls,
        products: Products,
        count: Float64[Tensor, "*#rows"],
        widths: Float64[Tensor, "terms"],
    ) -> "Regression":
        """
        Args:
            count: n.
            widths: τ, where 0 leaves a term out.
        """
        identity = torch.eye(len(widths), dtype=torch.float64)
        scaled = widths.unsqueeze(1) * products[..., :-1, :-1] * widths + identity
        lower, info = torch.linalg.cholesky_ex(scaled)
        failed = (info > 0) | ~lower.diagonal(dim1=-2, dim2=-1).isfinite().all(-1)
        lower = torch.where(failed[..., None, None], identity, lower)
        right = products[..., :-1, -1]
        mean = widths * torch.cholesky_solve((widths * right).unsqueeze(-1), lower).squeeze(-1)
        root = torch.linalg.solve_triangular(lower.mT, identity.expand_as(lower), upper=True)
        squares = (products[..., -1, -1] - (mean * right).sum(-1)).clamp(min=0)
        freedom = (_NOISE_COUNT + count).expand_as(squares)
        total = _NOISE_COUNT * _NOISE + squares
        log_det = lower.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return cls(
            mean,
            widths.unsqueeze(1) * root,
            1 - root.square().sum(-1),
            total / freedom,
            freedom,
            -log_det - 0.5 * freedom * total.log(),
            failed,
        )

    def at(self, chosen: Int[Tensor, "rows draws"]) -> "Regression":
        """The chosen regressions of each row."""
        return Regression(*(pick(getattr(self, name), chosen) for name in self.__annotations__))

    def drawn(
        self, normal: Float64[Tensor, "draws _"]
    ) -> tuple[Float64[Tensor, "rows draws terms"], Float64[Tensor, "rows draws"]]:
        """β and σ² from standard normals. Rows share these; the posterior is [rows, draws] or
        [rows, 1].
        """
        variance = self.noise * inverse_chi_square(normal[:, 0], self.freedom)
        spread = (self.root @ normal[:, 1:, None]).squeeze(-1)
        return self.mean + variance.sqrt().unsqueeze(-1) * spread, variance


def pick(values: Tensor, chosen: Int[Tensor, "rows draws"]) -> Tensor:
    """The chosen values of each row."""
    return values[torch.arange(len(values)).unsqueeze(1), chosen]


def inverse_chi_square(
    normal: Float64[Tensor, "*draws"], freedom: Float64[Tensor, "*rows"]
) -> Float64[Tensor, "*both"]:
    """ν ÷ χ²_ν from standard normals: the cube root of χ² is nearly one (Wilson, Hilferty 1931)."""
    ninth = 2 / (9 * freedom)
    return (1 - ninth + normal * ninth.sqrt()).clamp(min=0.2) ** -3


def in_units(
    steps: Iterable[tuple[Tensor, Tensor]],
    first: Float64[Tensor, "rows"],
    unit: Float64[Tensor, "rows"],
    variance: Float64[Tensor, "rows draws"],
) -> Paths:
    """Paths from values and means of each step, [draws, paths, rows], in units from `first`."""
    value, mean = (torch.stack(part, -1) for part in zip(*steps, strict=True))
    value, mean = (first[:, None] + unit[:, None] * one for one in (value, mean.expand_as(value)))
    of_paths = (unit**2 * variance.T)[:, None, :, None].expand_as(value)
    return Paths(value, mean, of_paths, value[:0])


def season_basis(season: int, most: int = FEW) -> Float64[Tensor, "season waves"]:
    """Sines and cosines of a season: all that differ, or the slowest ones of a long season.

    None for a season of one step.
    """
    count = min(season - 1, most)
    angle = 2 * torch.pi * torch.arange(season, dtype=torch.float64) / season
    pairs = range(1, 1 + -(-count // 2))
    waves = [f(k * angle) for k in pairs for f in (torch.cos, torch.sin)][:count]
    return torch.stack(waves, dim=1) if waves else torch.empty(season, 0, dtype=torch.float64)


# Histories


def evenly(values: Values) -> Float64[Tensor, "some steps"]:
    """At most `_ADAPTING` rows, evenly spread, the last one among them."""
    places = torch.linspace(0, len(values) - 1, min(_ADAPTING, len(values)))
    return values[places.round().long()]


def num_known(values: Values) -> Float64[Tensor, "rows"]:
    """The number of known steps of each row."""
    return (~values.isnan()).sum(1).double()


def missing_share(values: Values, steps: float) -> Float64[Tensor, "rows"]:
    """How much training's evidence counts: 0 for a history of `steps` steps, 1 for an empty one.

    A power prior: Ibrahim and Chen 2000.
    """
    return (1 - num_known(values) / steps).clamp(min=0)


def filled(values: Values) -> Values:
    """Missing values interpolated on straight lines; before the first and after the last, level."""
    places, copy = np.arange(values.shape[1]), values.clone()
    for row in copy:
        known = (~row.isnan()).numpy()
        if known.any() and not known.all():
            row[:] = torch.from_numpy(np.interp(places, places[known], row.numpy()[known]))
    return copy


def unit_of(values: Values) -> Float64[Tensor, "rows"]:
    """The standard deviation of changes from step to step, which makes all series alike."""
    changes = values.diff(dim=1)
    squares = (changes - changes.nanmean(1, keepdim=True)).square().nanmean(1).nan_to_num(0.0)
    least = 1e-6 * values.nan_to_num(0.0).abs().amax(1) + torch.finfo(torch.float64).tiny
    return torch.maximum(squares.sqrt(), least)
