"""What a prediction says about sums over the steps of a forecast, and how far sampling moves it."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Float64
from torch import Tensor

from models.evaluation.path_calibration import SumCalibration
from models.forecasting.totals.sums import Sums, quantiles
from models.prediction.answers.forecasts import coordinates_of_sums
from models.prediction.device import to_host
from models.prediction.options import BatchOptions
from models.prediction.prediction import bounds
from models.prediction.standard_error import standard_error
from models.prediction.summary import Summary

BATCHES = 10  # a standard error from so many is known to a quarter


def summarise(
    sums: Sums,
    means: Float64[Tensor, "samples steps"],
    calibration: SumCalibration | None,
    options: BatchOptions,
) -> Summary:
    """The answer to `totals`.

    Args:
        means: E(y_h | w) of each step and weight draw; the steps of a forecast are consecutive.
        calibration: None if there is none: then no interval is conformal.
    """
    of_draws = means.unflatten(1, sums.draws.shape[1:]).cumsum(-1).flatten(1)
    found = _summary(sums, of_draws, options)
    steps = sums.draws.shape[-1]
    if calibration is None or "conformal" not in options.interval_kinds or not options.intervals:
        return found
    ends = sums.within([calibration.half_widths(level, steps) for level in options.intervals])
    conformal = bounds("conformal", [(low.flatten(), high.flatten()) for low, high in ends])
    return found.with_values(**to_host(conformal))


def over_series(
    steps: Sums, means: Float64[Tensor, "samples groups steps"], options: BatchOptions
) -> tuple[Summary, Summary]:
    """The same of sums over series: of each step, and up to each step, group after group.

    Args:
        steps: draws of the sum over the series of each group at each step.
        means: of these sums, of each weight draw.
    """
    sums = Sums.of(steps.draws, steps.observation)
    return (
        _summary(steps, means.flatten(1), options),
        _summary(sums, means.cumsum(-1).flatten(1), options),
    )


def with_errors(found: Summary, batches: Sequence[Sums], options: BatchOptions) -> Summary:
    """The answer with the standard error of each number that comes from draws of sums.

    It is that of the mean over independent batches of weight draws, of which each is calibrated and
    summed for itself (batch means: Asmussen and Glynn 2007, Stochastic Simulation, §IV.5).
    """
    each = [_of_draws(one, options) for one in batches]
    errors = {k: standard_error(torch.stack([one[k] for one in each])) for k in each[0]}
    return replace(found, errors={**to_host(errors), **found.errors})


def _summary(sums: Sums, means: Float64[Tensor, "samples rows"], options: BatchOptions) -> Summary:
    errors = {"mean": standard_error(means)} if len(means) > 1 else {}
    return Summary(
        values=to_host({"mean": means.mean(0), **_of_draws(sums, options)}),
        errors=to_host(errors),
        coordinates=coordinates_of_sums(options),
    )


def _of_draws(sums: Sums, options: BatchOptions) -> dict[str, Tensor]:
    """Median, deviation, bounds of credible intervals, quantiles, probabilities of thresholds."""
    levels = options.intervals if "credible" in options.interval_kinds else ()
    wanted = [0.5, *(0.5 * (1 - p) for p in levels), *(0.5 * (1 + p) for p in levels)]
    draws = sums.draws.flatten(1)
    values = quantiles(draws, draws.new_tensor([*wanted, *options.quantiles])).T
    found = {"median": values[:, 0], "deviation": draws.std(0, correction=0)}
    if levels:
        found["lower"] = values[:, 1 : len(levels) + 1]
        found["upper"] = values[:, len(levels) + 1 : len(wanted)]
    if options.quantiles:
        found["quantile"] = values[:, len(wanted) :]
    if options.totals is not None and options.totals.exceeds:
        above = [(draws > t).to(draws).mean(0) for t in options.totals.exceeds]
        found["exceeds"] = torch.stack(above, dim=1)
    return found
