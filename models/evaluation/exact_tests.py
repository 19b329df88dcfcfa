"""What chance allows: exact tests of counts, and bounds on a share that is known from few rows.

Rows like those of training are exchangeable with the held-out rows: no weight was fitted to either.
So a share among new rows is compared with the share among the held-out rows, whose number limits
what can be known, and not with the share that a perfect model would have. All statements hold for
any method, any distribution and any number of rows. They need independent rows.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

ALARM_RATE = 0.001
"""The stated rate of false alarms: of a window of new labels, and of a version's held-out rows."""

_NEGLIGIBLE = 1e-18  # a probability; left out of sums, which keeps the arrays short


@dataclass(frozen=True)
class Counts:
    """How many of some rows, and of the held-out rows, have a property.

    Args:
        rows, hits: new rows, and those of them that have the property.
        held_out_rows, held_out_hits: the same of the held-out rows.
    """

    rows: int
    hits: int
    held_out_rows: int
    held_out_hits: int


def p_fewer(strata: Sequence[Counts]) -> float:
    """The probability of this number of hits or fewer, if new and held-out rows are alike.

    Given all hits t of the m new and n held-out rows of a stratum, the number w of new hits is
    hypergeometric: C(m, w) C(n, t − w) / C(m + n, t) (Fisher 1935). The sum over independent strata
    is a convolution (Mantel and Haenszel 1959, exact). If nothing has changed, P(p ≤ a) ≤ a for
    every a.
    """
    first, probabilities = _sum_of_hits(strata)
    below = sum(counts.hits for counts in strata) - first + 1
    return min(1.0, float(probabilities[: max(below, 0)].sum()))


def p_more(strata: Sequence[Counts]) -> float:
    """The same for this number of hits or more."""
    first, probabilities = _sum_of_hits(strata)
    below = sum(counts.hits for counts in strata) - first
    return min(1.0, float(probabilities[max(below, 0) :].sum()))


def p_other(strata: Sequence[Counts]) -> float:
    """The same for fewer or more: twice the smaller of the two, at most 1."""
    return min(1.0, 2 * min(p_fewer(strata), p_more(strata)))


def expected_hits(strata: Sequence[Counts]) -> float:
    """The mean number of new hits, given all hits: Σ m t / (m + n)."""
    return sum(
        new.rows * (new.hits + new.held_out_hits) / max(new.rows + new.held_out_rows, 1)
        for new in strata
    )


def independent_rows(metrics: Mapping[str, Any]) -> int:
    """How many independent rows the metrics rest on, at least.

    A row of a large weight tells no more than one row. The steps of a forecast depend on each
    other: they count as one row.
    """
    rows = metrics.get("rows", 0)
    return int(min(rows, metrics.get("weight", rows))) // (metrics.get("horizon") or 1)


def highest_flagged(rows: int, rank: int) -> float:
    """An upper bound on the share of new rows above the `rank`-th smallest of `rows` scores.

    The share is Beta(n + 1 − k, k) over the choice of the n rows, for any continuous score (Vovk
    2012, arXiv 1209.2673, proposition 2b). It is higher with a probability of `ALARM_RATE`.
    """
    from scipy import special  # noqa: PLC0415 - predictions do without

    return float(special.betainccinv(rows + 1 - rank, rank, ALARM_RATE))


def highest_mean(mean: float, rows: int) -> float:
    """An upper bound on the expectation of values in [0, 1], from their mean over some rows.

    It is the b ≥ mean with rows · KL(mean ‖ b) = log(1 / `ALARM_RATE`), where KL is that of
    Bernoulli distributions. The expectation is higher with a probability of `ALARM_RATE` at most
    (Hoeffding 1963, theorem 1).
    """
    from scipy import optimize  # noqa: PLC0415 - predictions do without

    def excess(bound: float) -> float:
        return rows * bernoulli_divergence(mean, bound) + math.log(ALARM_RATE)

    just_below = 1 - 2**-53
    if excess(just_below) <= 0:
        return 1.0
    return float(optimize.brentq(excess, mean, just_below, xtol=1e-15))


def bernoulli_divergence(share: float, other: float) -> float:
    """KL(share ‖ other) = p log(p / q) + (1 − p) log((1 − p) / (1 − q)), in nats."""
    terms = ((share, other), (1 - share, 1 - other))
    if any(p > 0 and q <= 0 for p, q in terms):
        return math.inf
    return sum(p * math.log(p / q) for p, q in terms if p > 0)


def _sum_of_hits(strata: Sequence[Counts]) -> tuple[int, Float[np.ndarray, "numbers"]]:
    """The least number of hits that has a probability, and the probabilities from there on."""
    from scipy.special import betaln  # noqa: PLC0415 - predictions do without

    first, probabilities = 0, np.ones(1)
    for counts in strata:
        rows, held_out, hits = counts.rows, counts.held_out_rows, counts.hits + counts.held_out_hits
        new = np.arange(max(0, hits - held_out), min(rows, hits) + 1)
        old = hits - new
        # log C(m, w) C(n, t − w), but for what does not depend on w
        logs = -betaln(new + 1, rows - new + 1) - betaln(old + 1, held_out - old + 1)
        of_stratum = np.exp(logs - logs.max())
        of_stratum /= of_stratum.sum()
        kept = np.flatnonzero(of_stratum > _NEGLIGIBLE)
        first += int(new[kept[0]])
        probabilities = np.convolve(probabilities, of_stratum[kept[0] : kept[-1] + 1])
    return first, probabilities


def binomial_up_to(most: int, rows: int, share: float) -> float:
    """P(X ≤ most) for X ~ Binomial(rows, share)."""
    from scipy import special  # noqa: PLC0415 - predictions do without

    return float(special.bdtr(most, rows, share))
