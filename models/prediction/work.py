"""What a prediction costs: work per sample of a row, and numbers in the answer.

Limits, admission and slices of requests all count by these functions. `benchmarks/costs.py`
compares them with measured time.
"""

from math import ceil

from models.prediction.options import DEFAULT_SAMPLES, BatchOptions, PredictOptions, Totals

# In evaluations of a density; a threshold takes one. A quantile takes a few steps of Newton's
# method with a distribution function and a density each, a grid four distribution functions for
# every two values. `benchmarks/probabilities.py` measures them.
_QUANTILE, _POINT = 6, 3
_COSTS = 50  # of numbers on a scale: 1.4 times the time of the default answers, by measurement
_DEFAULT = 3 * _QUANTILE  # the median and an interval
_SAMPLE = 2 * _DEFAULT  # with the pass through a small network
_DRAWS = _SAMPLE  # weights are drawn for all rows at once, and every draw is written
_ERRORS = 1.5  # of each bound and quantile
_TARGET = 3  # a first run, a longer one, and the errors of all outputs
_MOMENTS_OF_SUM = 4  # mean, median, deviation, error of the mean
_CLASS_COSTS = 500  # of 100 actions and 5 classes: as much again as a pass, by measurement


def values_per_sample(options: BatchOptions, classes: int = 0) -> int:
    """The work of a sample of a row in units of that with the default options, at least 1.

    A density whose numbers are more than that, as from few samples, counts by them.

    Args:
        classes: number of classes; 0 for numbers.
    """
    values = _of_classes(options, classes) if classes else _of_numbers(options)
    has_target = isinstance(options, PredictOptions) and options.target_mc_error is not None
    return _TARGET * values if has_target else values


def _of_numbers(options: BatchOptions) -> int:
    quantiles = 1 + 2 * len(options.intervals) + len(options.quantiles)
    points = 0 if options.density is None else options.density.points
    sums = 0 if options.totals is None else _of_totals(options.totals)
    steps = _QUANTILE * quantiles + len(options.exceeds) + _POINT * points + _of_costs(options)
    steps += sums
    if options.return_mc_errors:
        steps = round(_ERRORS * steps)
    if _returns_draws(options):
        steps += _DRAWS
    more = round((steps - _DEFAULT) / _SAMPLE)
    return max(1, 1 + more, ceil(2 * points / (options.samples or DEFAULT_SAMPLES)))


def values_per_row(options: BatchOptions, classes: int = 0, explained: int = 0) -> int:
    """How many numbers the answer has for a row, without those that every answer has.

    Args:
        classes: number of classes; 0 for numbers.
        explained: number of features whose contributions are asked for.
    """
    errors = 2 if options.return_mc_errors else 1
    draws = max(1, classes) * (options.samples or DEFAULT_SAMPLES) if _returns_draws(options) else 0
    parts = max(1, classes) + 2  # of the mean, and of the two uncertainties
    more = draws + 2 * parts * explained  # contributions have errors
    kinds = len(options.interval_kinds)
    if classes:
        sets = 0 if options.set_level is None else kinds * classes
        return more + errors * classes + sets
    bounds = 2 * len(options.intervals) * kinds
    points = 0 if options.density is None else 2 * options.density.points
    quantiles = bounds + len(options.quantiles)
    more += errors * (quantiles + points + len(options.exceeds))
    if options.totals is not None:
        of_sum = _MOMENTS_OF_SUM + quantiles + len(options.totals.exceeds)
        more += of_sum * (1 + 2 * _groups(options.totals))
    return more


def _returns_draws(options: BatchOptions) -> bool:
    return isinstance(options, PredictOptions) and options.return_draws


def _of_classes(options: BatchOptions, classes: int) -> int:
    """Values of each draw, and products with the costs of actions."""
    costs = options.costs
    actions = 0 if costs is None or costs.matrix is None else len(costs.matrix)
    draws = ceil(classes / 2) if _returns_draws(options) else 0
    return 1 + draws + round(actions * classes / _CLASS_COSTS)


def _of_totals(totals: Totals) -> int:
    """Of the sums of each series, and of those of groups: each step and up to each step."""
    return (_QUANTILE + len(totals.exceeds)) * (1 + 2 * _groups(totals))


def _groups(totals: Totals) -> int:
    """Groups for each series of the request."""
    match totals.groups:
        case None:
            return 0
        case tuple():
            return len(totals.groups)  # of each column at most as many as series
        case _:
            keys = {key for members in totals.groups.values() for key in members}
            return ceil(len(totals.groups) / len(keys))


def _of_costs(options: BatchOptions) -> int:
    """A product with the probabilities for each action of a matrix."""
    if options.costs is None:
        return 0
    return _COSTS if options.costs.matrix is None else len(options.costs.matrix)
