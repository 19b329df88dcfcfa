"""Standard errors of means over samples in compiled loops (`models.prediction.standard_error`)."""

import math

from models.prediction.compiled.jit import jit

_LEAST_SHARE = 0.25  # as `models.prediction.standard_error`


@jit
def mean_and_variance(values):
    """Mean and variance (divided by the number)."""
    total = 0.0
    for s in range(len(values)):
        total += values[s]
    mean, squares = total / len(values), 0.0
    for s in range(len(values)):
        squares += (values[s] - mean) ** 2
    return mean, squares / len(values)


@jit
def _squared_error(values, starts):
    """The squared standard error of the mean: Σ_m n_m s_m² ÷ S² (`standard_error`)."""
    found = 0.0
    for m in range(len(starts) - 1):
        count = starts[m + 1] - starts[m]
        variance = mean_and_variance(values[starts[m] : starts[m + 1]])[1]
        found += count * count / (count - 1) * variance
    return found / len(values) ** 2


@jit
def error_of_mean(values, starts, firsts, owners, size, shares, means):
    """The standard error of a mean of independent samples, or with `size` > 1 of even ones.

    As `models.prediction.standard_error.even_error`.

    Args:
        starts: the first sample of each member, and the number of samples.
        firsts, owners: the first sample of each block, and the first block of each member.
        shares: κ of a block, and of all points.
        means: to work in, one per block.
    """
    total = _squared_error(values, starts)
    if size == 1:
        return math.sqrt(total)
    for b in range(len(firsts)):
        means[b] = mean_and_variance(values[firsts[b] : firsts[b] + size])[0]
    between = _squared_error(means, owners)
    error = max((between - shares[0] * total) / (1 - shares[0]), _LEAST_SHARE * between)
    return math.sqrt(error + shares[1] * (total - error))
