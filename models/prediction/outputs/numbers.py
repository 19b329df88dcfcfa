"""Questions about the distribution of a number: thresholds, quantiles and the density."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from models.evaluation.calibration import Calibration
from models.likelihoods.class_mixture import Mixture
from models.likelihoods.number_mixture import NumberMixture
from models.prediction.declared_outputs import (
    ATOM,
    FORECASTS,
    NUMBERS,
    POINT,
    THRESHOLD,
    Output,
    P,
)
from models.prediction.monte_carlo_error import ErrorOf, errors_of_quantiles, shift
from models.prediction.options import BatchOptions, ResolvedOptions
from models.prediction.outputs.question import NO_NUMBERS, Question, TensorsByName, at_values
from models.prediction.summary import Summary

_AT_ONCE = 16  # quantiles that are solved together, as many as intervals have


def _of_thresholds(name: str, tasks: Sequence[str], member: str = "") -> Output:
    place: dict[str, Any] = {"along": THRESHOLD, "records": "exceeds"}
    return Output(name, "probability", tasks, member, option="exceeds", **place)


EXCEEDS = _of_thresholds("exceeds", NUMBERS, "probability")
"""P(y > t) for every threshold t in units of the target."""

EVER = tuple(_of_thresholds(name, FORECASTS) for name in ("any_above", "any_below"))
"""The probability that a forecast is above, or below, a threshold at some step up to each one."""

QUANTILE = Output(
    "quantile",
    "target",
    NUMBERS,
    "values",
    tensor="quantile_values",
    along=P,
    records="quantiles",
    option="quantiles",
)
"""The smallest value y with P(Y ≤ y) ≥ p, for every p."""

DENSITY = (
    Output("density_kinds", "kind", NUMBERS, "density.kind", None, option="density"),
    Output("density_kind", "kind", NUMBERS, None, tensor=None, option="density"),
    Output("density_values", "target", NUMBERS, "density.values", along=POINT, option="density"),
    Output("density", "per target", NUMBERS, "density.density", along=POINT, option="density"),
    Output(
        "density_atom",
        "probability",
        NUMBERS,
        "probability",
        tensor=None,
        along=ATOM,
        records="density.atoms",
        option="density",
    ),
)
"""The predictive density on a grid that suits each row.

The grid leaves out a thousandth of the probability at each end. Half of its values are evenly
spread on the target's scale, half are of equal probability. Its kind is the same for all rows of a
model: whole numbers have a probability in place of a density. So have atoms, which the density of
all other values does not count.
"""


def _exceeds(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The survival function of the calibrated mixture, which keeps the digits of rare events."""
    assert isinstance(mixture, NumberMixture)
    return {"exceeds": mixture.survival(at_values(mixture, options.exceeds)).T}


def _errors_of_exceeds(
    mixture: Mixture, raw: Mixture, values: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """Of S_s(t), and of the shift of the sample times f(t)."""
    assert isinstance(mixture, NumberMixture)
    moved, errors = shift(mixture, raw), []
    for threshold in options.exceeds:
        value = at_values(mixture, [threshold])
        parts = mixture.survival_parts(value).squeeze(0)
        errors.append(error(parts if moved is None else parts + mixture.density(value) * moved))
    return {"exceeds": torch.stack(errors, dim=1)}


def _quantiles(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    """The quantiles of the calibrated mixture."""
    assert isinstance(mixture, NumberMixture)
    levels = options.quantiles
    parts = [levels[i : i + _AT_ONCE] for i in range(0, len(levels), _AT_ONCE)]
    return {"quantile": torch.cat([mixture.quantiles(part) for part in parts]).T}


def _errors_of_quantiles(
    mixture: Mixture, raw: Mixture, values: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    assert isinstance(mixture, NumberMixture)
    levels = at_values(mixture, options.quantiles)
    return {"quantile": errors_of_quantiles(mixture, raw, values["quantile"].T, levels, error).T}


def _density(
    mixture: Mixture, options: BatchOptions, calibration: Calibration | None
) -> dict[str, Tensor]:
    assert isinstance(mixture, NumberMixture)
    assert options.density is not None
    grid = mixture.grid(options.density.points)
    return {
        "density_values": grid.T,
        "density": mixture.density(grid).T,
        "density_is_whole": torch.full_like(grid[0], mixture.target.integer),
        "density_atoms": at_values(mixture, mixture.atom_values).T,
        "density_atom": mixture.atom_probabilities().T,
    }


def _errors_of_density(
    mixture: Mixture, raw: Mixture, values: TensorsByName, options: BatchOptions, error: ErrorOf
) -> dict[str, Tensor]:
    """f_s(y), and the shift of the sample times what a shift of all samples does to the density."""
    assert isinstance(mixture, NumberMixture)
    moved, errors = shift(mixture, raw), []
    for value in values["density_values"].T.split(1):
        each = mixture.density_parts(value)
        if moved is not None:
            slope = ((value - mixture.locs) / mixture.scales.square()).squeeze(1) * each
            each = each + slope.mean(1) * moved
        errors.append(error(each.squeeze(0)))
    return {"density": torch.stack(errors, dim=-1)}


def _finish_density(summary: Summary, options: ResolvedOptions) -> Summary:
    kinds = [
        "probability" if is_whole else "density"
        for is_whole in summary["density_is_whole"].tolist()
    ]
    atoms = summary["density_atoms"][0].tolist()
    summary = summary.without("density_is_whole", "density_atoms").with_values(density_kind=kinds)
    return summary.with_coordinates(ATOM, atoms).with_constants(density_kinds=kinds[0])


QUESTIONS = (
    Question(
        "exceeds",
        NUMBERS,
        (EXCEEDS, *EVER),
        _exceeds,
        _errors_of_exceeds,
        instead=NO_NUMBERS,
    ),
    Question(
        "quantiles", NUMBERS, (QUANTILE,), _quantiles, _errors_of_quantiles, instead=NO_NUMBERS
    ),
    Question(
        "density",
        NUMBERS,
        DENSITY,
        _density,
        _errors_of_density,
        _finish_density,
        NO_NUMBERS,
    ),
)

PathSteps = Float64[Tensor, "paths steps"]


def ever_above(draws: PathSteps, survival: PathSteps, threshold: float, horizon: int) -> PathSteps:
    """What each path adds to the probability of a value above the threshold up to each step.

    With the values y_1 … y_h of a path, and S_h(t) = P(y_h > t) given the path before step h,

        P(max y_1 … y_h > t) = 1 − E[ 1{max y_1 … y_{h−1} ≤ t} (1 − S_h(t)) ],

    an average over paths whose last step is exact instead of drawn (Rao–Blackwell): it has less
    error, it is S at the first step, and never below the probability of the step itself.

    Args:
        draws: whole paths; steps of several forecasts, each of `horizon`, one after the other.
        survival: P(y > threshold) of each step given the path before.
    """
    highest = _before(draws, horizon, -math.inf, torch.cummax)
    return 1 - (highest <= threshold) * (1 - survival)


def ever_below(draws: PathSteps, at_least: PathSteps, threshold: float, horizon: int) -> PathSteps:
    """The same of a value below the threshold.

    Args:
        at_least: P(y ≥ threshold) of each step given the path before.
    """
    lowest = _before(draws, horizon, math.inf, torch.cummin)
    return 1 - (lowest >= threshold) * at_least


def probability(parts: PathSteps, horizon: int) -> Float64[Tensor, "steps"]:
    """The mean over the paths, which never falls from step to step.

    The estimates of consecutive steps may fall by their sampling errors: the running maximum is
    taken.
    """
    return parts.mean(0).unflatten(-1, (-1, horizon)).cummax(-1).values.flatten()


def _before(draws: PathSteps, horizon: int, start: float, extreme: object) -> PathSteps:
    """The extreme of the steps before each one."""
    steps = draws.unflatten(-1, (-1, horizon))
    first = torch.full_like(steps[..., :1], start)
    so_far = torch.cat([first, steps[..., :-1]], dim=-1)
    return extreme(so_far, dim=-1).values.flatten(-2)  # type: ignore[operator]
