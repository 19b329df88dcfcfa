"""What a number target is like: its support, whole numbers, atoms, and scales that may suit it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from models.config import LikelihoodConfig, ScaleName, SupportConfig
from models.exceptions import InvalidData
from models.features import moments
from models.features.moments import Weights
from models.features.scales import (
    IdentityScale,
    LogitScale,
    LogScale,
    PowerScale,
    Scale,
)
from models.features.targets import MAX_ATOMS, NumberTarget

Values = Float[np.ndarray, "rows"]

_ATOM = 0.05  # smallest share of the rows of a value with a probability of its own
_FREQUENT = 5.0  # an atom inside the support is this often as frequent as the values beside it
_NEIGHBOURS = 20  # on each side, to compare with
REPEATED = 0.5  # share of rows whose value repeats, from which whole numbers have probabilities
_TAPERING = 0.5  # an edge is no tail if it has at least this share of its neighbour's rows


@dataclass(frozen=True)
class _Counts:
    """The distinct values, in increasing order, and the share of the rows that each has."""

    values: Values
    shares: Values

    @classmethod
    def of(cls, values: Values, weights: Weights | None) -> "_Counts":
        distinct, places = np.unique(values, return_inverse=True)
        return cls(distinct, np.bincount(places, weights) / moments.total(values, weights))

    def is_edge(self, index: int) -> bool:
        """Whether the first (0) or last (−1) value has many rows, and is not the end of a tail."""
        beside = self.shares[1 if index == 0 else -2] if len(self.shares) > 1 else 0.0
        share = self.shares[index]
        return bool(share >= _ATOM and share >= _TAPERING * beside)


def describe_target(
    values: Values,
    support: SupportConfig | None,
    likelihood: LikelihoodConfig,
    weights: Weights | None = None,
) -> tuple[NumberTarget, ...]:
    """The target on each scale that may suit it, plain values first.

    They differ in nothing but the scale. Whether it has a density or probabilities follows from
    the values, not from log scores: a density on values that repeat has no maximum.

    Raises:
        InvalidData: if the target does not vary, or does not fit the likelihood or the support.
    """
    support = support or SupportConfig()
    check_support(values, support)
    counts = _Counts.of(values, weights)
    integer = _is_integer(counts, moments.total(values, weights), support, likelihood)
    lower, upper = _bounds(counts, support, integer=integer)
    atoms = tuple(_atoms(counts, lower, upper, integer=integer))
    if np.isin(counts.values, atoms, invert=True).sum() < 2:  # nothing is left for a density
        atoms = ()
    in_density = ~np.isin(values, atoms)
    rest, rest_weights = values[in_density], moments.part(weights, in_density)
    named = _scales(rest, rest_weights, lower, upper, integer=integer)
    if likelihood.scale is not None:
        if likelihood.scale not in named:
            raise InvalidData(_SCALE_NEEDS[likelihood.scale], "/likelihood/scale")
        named = {likelihood.scale: named[likelihood.scale]}
    return tuple(
        NumberTarget.shaped(
            values, scale, lower=lower, upper=upper, integer=integer, atoms=atoms, weights=weights
        )
        for scale in named.values()
    )


def check_support(values: Values, support: SupportConfig) -> None:
    """Refuse targets outside the given support.

    Raises:
        InvalidData: with the number of rows and the bound.
    """
    for name, bound, sign in (("lower", support.lower, 1), ("upper", support.upper, -1)):
        outside = 0 if bound is None else int((sign * values < sign * bound).sum())
        if outside:
            side = "below" if name == "lower" else "above"
            raise InvalidData(
                f"{outside} rows have a target {side} the {name} bound {bound:g}: "
                "correct the rows or the bound",
                f"/target/{name}",
            )
    fractions = values != np.round(values)
    if support.integer and fractions.any():
        raise InvalidData(
            f"{fractions.sum()} rows have a target that is not a whole number, such as "
            f"{values[fractions][0]:g}: leave integer out",
            "/target/integer",
        )


def describe_shape(target: NumberTarget) -> str:
    """A sentence for the version's notes."""
    low = "no lower bound" if target.lower is None else f"the lower bound {target.lower:g}"
    high = "no upper bound" if target.upper is None else f"the upper bound {target.upper:g}"
    kind = "whole numbers" if target.integer else "numbers"
    atoms = ", ".join(f"{atom:g}" for atom in target.atoms)
    own = f"; these values have a probability of their own: {atoms}" if atoms else ""
    where = f"with {low} and {high}, on the scale {target.scale.kind}"
    return f"the target is predicted as {kind} {where}{own}"


def _is_integer(
    counts: _Counts, rows: float, support: SupportConfig, likelihood: LikelihoodConfig
) -> bool:
    whole = bool((counts.values == np.round(counts.values)).all())
    if likelihood.kind == "count":
        if not whole or support.integer is False:
            fraction = counts.values[counts.values != np.round(counts.values)][:1]
            example = f", such as {fraction[0]:g}" if len(fraction) else ""
            raise InvalidData(
                f"likelihood 'count' needs whole numbers; the target has others{example}",
                "/likelihood",
            )
        return True
    if support.integer is not None:
        return support.integer
    repeated = counts.shares[counts.shares * rows > 1.5].sum()
    return bool(whole and repeated >= REPEATED)


def _bounds(
    counts: _Counts, support: SupportConfig, *, integer: bool
) -> tuple[float | None, float | None]:
    """The given bounds, or an edge that many rows have; else the usual ones.

    The most extreme value of few rows is no bound, as a new one may pass it.
    """
    lower, upper = support.lower, support.upper
    smallest, largest = float(counts.values[0]), float(counts.values[-1])
    if lower is None and counts.is_edge(0):
        lower = smallest
    if upper is None and counts.is_edge(-1):
        upper = largest
    return usual_ends(lower, upper, smallest, largest, integer=integer)


def usual_ends(
    lower: float | None, upper: float | None, smallest: float, largest: float, *, integer: bool
) -> tuple[float | None, float | None]:
    """The bounds; where there is none, 0 if no value passes it, and 1 above a proportion.

    Whole numbers have whole bounds.
    """
    if lower is None and smallest >= 0:
        lower = 0.0
    if upper is None and largest <= 0 and smallest < 0:
        upper = 0.0
    if upper is None and lower == 0 and 0.5 < largest <= 1 and not integer:
        upper = 1.0
    if integer:
        lower = None if lower is None else float(np.ceil(lower))
        upper = None if upper is None else float(np.floor(upper))
    return lower, upper


def _atoms(
    counts: _Counts, lower: float | None, upper: float | None, *, integer: bool
) -> Iterator[float]:
    """Values with many rows: at an edge, or far more frequent than the values beside them."""
    frequent = np.flatnonzero(counts.shares >= _ATOM)
    candidates = []
    for index in frequent.tolist():
        value, share = float(counts.values[index]), counts.shares[index]
        around = slice(max(0, index - _NEIGHBOURS), index + _NEIGHBOURS + 1)
        beside = np.delete(counts.shares[around], index - around.start)
        if integer:  # the discretised components have each value; an atom must stand out
            near = counts.shares[max(0, index - 1) : index + 2]
            stands_out = share > 2 * np.delete(near, min(index, 1)).max(initial=0.0)
        else:
            at_edge = value in (lower, upper)
            stands_out = at_edge or share > _FREQUENT * np.median(beside) if len(beside) else False
        if stands_out:
            candidates.append((share, value))
    yield from sorted(value for _, value in sorted(candidates, reverse=True)[:MAX_ATOMS])


_SCALE_NEEDS: dict[ScaleName, str] = {
    "identity": "",
    "log": "the scale log needs a target with a lower bound: give target.lower",
    "power": "the scale power needs at least 11 different values",
    "logit": "the scale logit needs two bounds: give target.lower and target.upper",
}


def _scales(
    values: Values,
    weights: Weights | None,
    lower: float | None,
    upper: float | None,
    *,
    integer: bool,
) -> dict[ScaleName, Scale]:
    scales: dict[ScaleName, Scale] = {"identity": IdentityScale()}
    if lower is not None:
        scales["log"] = LogScale(lower, 1.0 if integer else _log_offset(values - lower, weights))
    if (power := PowerScale.fit(values, weights)) is not None:
        scales["power"] = power
    if lower is not None and upper is not None and upper > lower:
        distance = np.minimum(values - lower, upper - values)
        offset = 0.5 if integer else smallest_positive(distance, upper - lower) / 2
        scales["logit"] = LogitScale(lower, upper, offset)
    return scales


def _log_offset(distance: Values, weights: Weights | None) -> float:
    """The most likely c of a Gaussian log(y − lower + c), among half the smallest and quantiles.

    It is above 0, so that the bound itself has a finite density.
    """
    positive = distance[distance > 0]
    positive_weights = moments.part(weights, distance > 0)
    options = set(moments.quantile(positive, [0.05, 0.25], positive_weights).tolist())
    options.add(smallest_positive(distance) / 2)

    def log_likelihood(offset: float) -> float:
        logs = np.log(distance + offset)
        spread = np.log(moments.deviation(logs, weights) + 1e-300)
        return float(-spread) - moments.mean(logs, weights)

    return max(sorted(options), key=log_likelihood)


def smallest_positive(distance: Values, width: float | None = None) -> float:
    """The smallest distance above 0, but no less than a millionth of the width.

    Args:
        width: by default the largest distance, or 1 if there is none above 0.
    """
    width = float(distance.max(initial=0.0)) or 1.0 if width is None else width
    return max(float(distance[distance > 0].min(initial=width)), 1e-6 * width)
