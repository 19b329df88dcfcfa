"""What the members of a mixture of forecasts have in common."""

from dataclasses import dataclass, field
from typing import Annotated, Protocol

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float64, Int
from pydantic import Field
from torch import Tensor

from models.forecasting.rollout import Paths
from models.prediction.pauses import Pause, go_on

_ADAPTING = 8  # rows that a member adapts to
_NOISE, _NOISE_COUNT = 0.5, 2.0  # of σ²'s prior: its size, and how many values it counts as

FEW = 12  # sines and cosines of a season, usually

Season = Annotated[int, Field(strict=True, ge=1, le=10_000)]

Shorter = Annotated[tuple[Season, ...], Len(0, 2)]

Values = Float64[Tensor, "rows steps"]
"""u of each history, the latest value last; NaN where it is missing, and before it begins."""


@dataclass(frozen=True)
class Asked:
    """How many sample paths are asked for.

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


class Member(Protocol):
    """A model whose posterior depends on the given history, and on what training found."""

    @property
    def name(self) -> str:
        """What it is called in a version's description."""
        ...

    def adapted(self, values: Values) -> "Member":
        """A copy that knows where the posteriors of these histories lie."""
        ...

    def paths(self, values: Values, asked: Asked) -> Paths:
        """Sample paths after each history. Rows share the random numbers."""
        ...


def evenly(values: Values) -> Float64[Tensor, "some steps"]:
    """At most `_ADAPTING` rows, evenly spread, the last one among them."""
    places = torch.linspace(0, len(values) - 1, min(_ADAPTING, len(values)))
    return values[places.round().long()]


def given(values: Values) -> float:
    """The mean number of known steps of a row."""
    return float((~values.isnan()).sum(1).double().mean())


def missing_share(values: Values, steps: float) -> Float64[Tensor, "rows"]:
    """The share of training's `steps` that each history lacks, for which training counts.

    A power prior: Ibrahim and Chen 2000.
    """
    return (1 - (~values.isnan()).sum(1).double() / steps).clamp(min=0)


def noise_posterior(
    squares: Float64[Tensor, "*all"], known: Float64[Tensor, "*rows"]
) -> tuple[Float64[Tensor, "*all"], Float64[Tensor, "*rows"]]:
    """ν times the size of σ², and ν, of its inverse gamma posterior.

    Args:
        squares: the sum of squared errors that is left after the regression.
        known: the number of values.
    """
    return _NOISE_COUNT * _NOISE + squares.clamp(min=0), _NOISE_COUNT + known


def first_known(values: Values) -> Float64[Tensor, "rows"]:
    """The first value of each row that is not missing; 0 if all are."""
    known = ~values.isnan()
    first = values.gather(1, known.int().argmax(1, keepdim=True)).squeeze(1)
    return first.nan_to_num(0.0)


def filled(values: Values) -> Values:
    """Missing values between, before and after known ones, on straight lines and level ends."""
    places, found = np.arange(values.shape[1]), values.clone()
    for row in found:
        known = (~row.isnan()).numpy()
        if known.any() and not known.all():
            row[:] = torch.from_numpy(np.interp(places, places[known], row.numpy()[known]))
    return found


def unit_of(values: Values) -> Float64[Tensor, "rows"]:
    """The standard deviation of changes from step to step, which makes all series alike."""
    changes = values[:, 1:] - values[:, :-1]
    known = ~changes.isnan()
    count = known.sum(1).clamp(min=1)
    mean = changes.nan_to_num(0.0).sum(1) / count
    squares = ((changes - mean.unsqueeze(1)).nan_to_num(0.0) * known).square().sum(1)
    least = 1e-6 * values.nan_to_num(0.0).abs().amax(1) + torch.finfo(torch.float64).tiny
    return torch.maximum((squares / count).sqrt(), least)


def resampled(weights: Float64[Tensor, "rows particles"], draws: int) -> Int[Tensor, "rows draws"]:
    """Particles in proportion to their weights (systematic resampling: Kitagawa 1996)."""
    places = (torch.arange(draws, dtype=torch.float64) + 0.5) / draws
    ends = weights.cumsum(1)
    ends = ends / ends[:, -1:]
    return torch.searchsorted(ends, places.expand(len(weights), -1).contiguous()).clamp(
        max=weights.shape[1] - 1
    )


def inverse_chi_square(
    normal: Float64[Tensor, "*draws"], freedom: Float64[Tensor, "*rows"]
) -> Float64[Tensor, "*both"]:
    """ν ÷ χ²_ν from standard normals: the cube root of χ² is nearly one (Wilson, Hilferty 1931)."""
    ninth = 2 / (9 * freedom)
    return (1 - ninth + normal * ninth.sqrt()).clamp(min=0.2) ** -3


def season_basis(season: int, most: int = FEW) -> Float64[Tensor, "season waves"]:
    """Sines and cosines of a season: all that differ, or the slowest ones of a long season."""
    angle = 2 * torch.pi * torch.arange(season, dtype=torch.float64) / season
    waves = [f(k * angle) for k in range(1, season // 2 + 1) for f in (torch.cos, torch.sin)]
    return torch.stack(waves[: min(season - 1, most)], dim=1)
