"""What training promised: the scores of held-out rows beside those of simulated labels for them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated

import torch
from annotated_types import Len
from jaxtyping import Float
from torch import Tensor

from models.config.ranges import Count, NotNegative, Number
from models.expected_scores.simulation import WORLDS, HeldOut, RowMoments, Simulated

# The prior of the slope is N(1, ½²), as that of log c in `models.evaluation.calibration`: without
# rows that say more, a change that predictions expect is true within a factor of ½ to 1½.
SLOPE_SCALE = 0.5
ERRORS = ("squared_error", "mae")  # positive: changes are factors

_MOST_SCORES = 50


@dataclass(frozen=True)
class PromisedScore:
    """A score of the held-out rows.

    Args:
        measured: with their labels.
        worlds: with the simulated labels of each world.
        dispersion: variance of a row's score about its simulated mean ÷ its simulated variance, at
            least 1: above it predictions are surer of the score than they may be.
        slope: how much the score changes from row to row where predictions expect a change of 1,
            with its standard error; of errors the changes are relative ones.
    """

    measured: Number
    worlds: Annotated[tuple[Number, ...], Len(1, WORLDS)]
    dispersion: NotNegative = 1.0
    slope: Number = 1.0
    slope_error: NotNegative = SLOPE_SCALE


@dataclass(frozen=True)
class Promise:
    """What a variant's held-out rows let expect of new rows like them.

    Args:
        rows: number of held-out rows.
        scores: by name.
        loss: mean of the loss that predictions expect (`models.expected_scores.simulation`).
        loss_error: its standard error.
    """

    rows: Count
    scores: Annotated[dict[str, PromisedScore], Len(0, _MOST_SCORES)]
    loss: Number
    loss_error: NotNegative

    @classmethod
    def of(cls, parts: Sequence[HeldOut]) -> "Promise":
        """From held-out rows, all of which have labels."""
        found = Simulated.joined([part.sums for part in parts])
        weights = torch.cat([part.weights for part in parts])
        scores = {}
        for name, total in found.worlds.items():
            rows = _joined([part.moments[name] for part in parts])
            if bool(total.isfinite().all()) and bool(rows.actual.isfinite().all()):
                scores[name] = _promised(name, rows, weights, total / found.weight)
        loss = found.loss / found.weight
        spread = max(found.loss_squares / found.weight - loss**2, 0.0)
        return cls(found.rows, scores, loss, math.sqrt(spread / max(found.rows - 1, 1)))


def _joined(parts: Sequence[RowMoments]) -> RowMoments:
    return RowMoments(
        *(torch.cat([getattr(part, f.name) for part in parts]) for f in fields(RowMoments))
    )


def _promised(
    name: str,
    rows: RowMoments,
    weights: Float[Tensor, "rows"],
    worlds: Float[Tensor, "worlds"],
) -> PromisedScore:
    each = weights / weights.sum()
    measured, expected = float(each @ rows.actual), float(each @ rows.mean)
    scale = measured / expected if name in ERRORS and min(measured, expected) > 0 else 1.0
    slope, error = _slope(rows, each, len(worlds), scale)
    return PromisedScore(
        measured=measured,
        worlds=tuple(float(f"{one:.9g}") for one in worlds.tolist()),
        dispersion=_dispersion(rows, each, len(worlds)),
        slope=slope,
        slope_error=error,
    )


def _dispersion(rows: RowMoments, each: Float[Tensor, "rows"], worlds: int) -> float:
    """Var(actual − simulated mean) ÷ what it would be if the predictions were right, or 1."""
    surprise = rows.actual - rows.mean
    found = float(each @ (surprise - each @ surprise).square())
    right = float(each @ rows.variance) * (1 + 1 / worlds)
    return max(1.0, found / right) if right > 0 and math.isfinite(found / right) else 1.0


def _slope(
    rows: RowMoments, each: Float[Tensor, "rows"], worlds: int, scale: float
) -> tuple[float, float]:
    """The slope of actual on expected scores, and its standard error, given the prior.

    Least squares, with the error of rows of unlike variances (White 1980). Simulated means are not
    exact: what that adds to their spread is taken away, or the slope would be too flat.

    Args:
        scale: of the actual scores ÷ that of the expected ones.
    """
    apart = rows.mean - each @ rows.mean
    spread = float(each @ apart.square() - each @ rows.variance / worlds)
    if spread <= 0:
        return 1.0, SLOPE_SCALE
    actual = (rows.actual - each @ rows.actual) / scale
    slope = float(each @ (apart * actual)) / spread
    residual = actual - slope * apart
    error = math.sqrt(float((each * apart * residual).square().sum())) / spread
    if not (math.isfinite(slope) and 0 < error < math.inf):
        return 1.0, SLOPE_SCALE
    precision = SLOPE_SCALE**-2 + error**-2
    return (SLOPE_SCALE**-2 + slope * error**-2) / precision, precision**-0.5
