"""How much work the answers of a prediction are, per sample of a row."""

from math import ceil

from models.prediction.options import DEFAULT_SAMPLES, BatchOptions, Totals

# In evaluations of a density; a threshold takes one. A quantile takes a few steps of Newton's
# method with a distribution function and a density each, a grid four distribution functions for
# every two values. `benchmarks/probabilities.py` measures them.
_QUANTILE, _POINT = 6, 3
_COSTS = 50  # of numbers on a scale: 1.4 times the time of the default answers, by measurement
_DEFAULT = 3 * _QUANTILE  # the median and an interval
_SAMPLE = 2 * _DEFAULT  # with the pass through a small network


def values_per_sample(options: BatchOptions) -> int:
    """The work of a sample of a row in units of that with the default options, at least 1.

    A density whose numbers are more than that, as from few samples, counts by them.
    """
    quantiles = 1 + 2 * len(options.intervals) + len(options.quantiles)
    points = 0 if options.density is None else options.density.points
    sums = 0 if options.totals is None else _of_totals(options.totals)
    steps = _QUANTILE * quantiles + len(options.exceeds) + _POINT * points + _of_costs(options)
    steps += sums
    more = round((steps - _DEFAULT) / _SAMPLE)
    return max(1, 1 + more, ceil(2 * points / (options.samples or DEFAULT_SAMPLES)))


def _of_totals(totals: Totals) -> int:
    """Of the sums of each series, and of those of groups: each step and up to each step."""
    match totals.groups:
        case None:
            groups = 0
        case tuple():
            groups = len(totals.groups)  # of each column at most as many as series
        case _:
            keys = {key for members in totals.groups.values() for key in members}
            groups = ceil(len(totals.groups) / len(keys))
    return (_QUANTILE + len(totals.exceeds)) * (1 + 2 * groups)


def _of_costs(options: BatchOptions) -> int:
    """A product with the probabilities for each action of a matrix."""
    if options.costs is None:
        return 0
    return _COSTS if options.costs.matrix is None else len(options.costs.matrix)
