"""What a prediction says about sums over the steps of a forecast, and how far sampling moves it."""

from collections.abc import Sequence

import torch
from jaxtyping import Float64
from torch import Tensor

from models.evaluation.path_calibration import SumCalibration
from models.forecasting.totals.sums import Sums, quantiles
from models.prediction.answers.exceeds import column_name as threshold_name
from models.prediction.answers.quantiles import column_name as quantile_name
from models.prediction.answers.totals import QUESTION, STEPS, SUMS, TOTAL
from models.prediction.influence import ERROR
from models.prediction.options import BatchOptions
from models.prediction.standard_error import standard_error

MC_ERROR = QUESTION.key("mc_error")  # of the mean
BATCHES = 10  # a standard error from so many is known to a quarter


def summarise(
    sums: Sums,
    means: Float64[Tensor, "samples steps"],
    calibration: SumCalibration | None,
    options: BatchOptions,
) -> dict[str, Tensor]:
    """The arrays of the answer to `totals`, by their names in the summary of a prediction.

    Args:
        means: E(y_h | w) of each step and weight draw; the steps of a forecast are consecutive.
        calibration: None if there is none: then no interval is conformal.
    """
    of_draws = means.unflatten(1, sums.draws.shape[1:]).cumsum(-1).flatten(1)
    found = {"mean": of_draws.mean(0), **_of_draws(sums, options)}
    if len(of_draws) > 1:
        found["mc_error"] = standard_error(of_draws)
    steps = sums.draws.shape[-1]
    if calibration is not None and "conformal" in options.interval_kinds and options.intervals:
        ends = sums.within([calibration.half_widths(level, steps) for level in options.intervals])
        for i, end in enumerate(("lower", "upper")):
            found[f"conformal {end}"] = torch.stack([one[i].flatten() for one in ends], dim=1)
    return {QUESTION.key(name): values for name, values in found.items()}


def over_series(
    steps: Sums, means: Float64[Tensor, "samples groups steps"], options: BatchOptions
) -> dict[str, Tensor]:
    """The same of sums over series: of each step, and up to each step, group after group.

    Args:
        steps: draws of the sum over the series of each group at each step.
        means: of these sums, of each weight draw.
    """
    both = {
        STEPS: (steps, means),
        SUMS: (Sums.of(steps.draws, steps.observation), means.cumsum(-1)),
    }
    found: dict[str, Tensor] = {}
    for name, (sums, each) in both.items():
        of_draws = each.flatten(1)
        part = {"mean": of_draws.mean(0), **_of_draws(sums, options)}
        if len(of_draws) > 1:
            part["mc_error"] = standard_error(of_draws)
        found |= {f"{name} {key}": values for key, values in part.items()}
    return found


def errors(batches: Sequence[Sums], options: BatchOptions) -> dict[str, Tensor]:
    """The standard error of each number that comes from draws of sums.

    It is that of the mean over independent batches of weight draws, of which each is calibrated and
    summed for itself (batch means: Asmussen and Glynn 2007, Stochastic Simulation, §IV.5).
    """
    each = [_by_column(_of_draws(one, options), options) for one in batches]
    return {
        f"{ERROR}{TOTAL}{name}": standard_error(torch.stack([one[name] for one in each]))
        for name in each[0]
    }


def _of_draws(sums: Sums, options: BatchOptions) -> dict[str, Tensor]:
    """Median, deviation, bounds of credible intervals, quantiles, probabilities of thresholds."""
    levels = options.intervals if "credible" in options.interval_kinds else ()
    wanted = [0.5, *(0.5 * (1 - p) for p in levels), *(0.5 * (1 + p) for p in levels)]
    draws = sums.draws.flatten(1)
    values = quantiles(draws, draws.new_tensor([*wanted, *options.quantiles])).T
    found = {"median": values[:, 0], "deviation": draws.std(0, correction=0)}
    if levels:
        found["credible lower"] = values[:, 1 : len(levels) + 1]
        found["credible upper"] = values[:, len(levels) + 1 : len(wanted)]
    if options.quantiles:
        found["quantiles"] = values[:, len(wanted) :]
    if options.totals is not None and options.totals.exceeds:
        above = [(draws > t).to(draws).mean(0) for t in options.totals.exceeds]
        found["exceeds"] = torch.stack(above, dim=1)
    return found


def _by_column(found: dict[str, Tensor], options: BatchOptions) -> dict[str, Tensor]:
    """The same numbers by the names of their table columns."""
    thresholds = () if options.totals is None else options.totals.exceeds
    names = {
        "median": ["median"],
        "deviation": ["deviation"],
        "credible lower": [f"lower_{level}" for level in options.intervals],
        "credible upper": [f"upper_{level}" for level in options.intervals],
        "quantiles": [quantile_name(p) for p in options.quantiles],
        "exceeds": [threshold_name(t) for t in thresholds],
    }
    return {
        column: values
        for name, array in found.items()
        for column, values in zip(names[name], array.T if array.ndim > 1 else [array], strict=True)
    }
