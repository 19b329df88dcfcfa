"""The gate of a repeated training: may a challenger take the champion's place?

Both models score the same rows. The challenger passes if the rows show that it loses at most
`max_loss` of log likelihood per row, and do not show that its 90 % intervals cover less than
`min_coverage`.

* Score: the lower end of a one-sided 95 % t-interval of the mean paired difference must not be
  below −`max_loss`. This is a test of non-inferiority: a challenger that is worse than allowed
  passes in at most 5 % of cases (Schuirmann 1987), a little more if few rows have a long tail.
  With `max_loss` 0 it has to be shown better. A paired t-interval, because scores of the same row
  go together, which a test of two samples would waste; and no bootstrap of percentiles, which
  covers less than the t-interval for few rows (Hesterberg 2015).
* Coverage: the upper end of the one-sided 95 % interval of Clopper and Pearson (1934) must not be
  below `min_coverage`. A challenger that covers so much is refused in at most 5 % of cases. The
  burden is the other way round: `min_coverage` is below the intervals' level already, and to prove
  0.87 of intervals that hold 0.9 takes some 300 rows.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Annotated, Any, Literal

import torch
from annotated_types import Interval
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.config.ranges import STRICT
from models.evaluation.exact_tests import binomial_up_to
from models.evaluation.paired import paired
from models.evaluation.weighting import Weights, mean
from models.likelihoods.incomplete_beta import student_survival

ERROR = 0.05
"""The rate of each wrong decision, at its boundary."""
LEVEL = 0.9
"""Of the intervals whose coverage counts."""
LEAST_ROWS = 30
"""Fewer are refused: a t-interval of few skewed differences covers less than it says (Boos and
Hughes-Oliver 2000)."""

_HALVINGS = 40  # of an interval of length 1: to 1e-12
_MOST_STEPS, _PRECISION = 50, 1e-12  # of a quantile; one degree of freedom takes ten steps


@dataclass(frozen=True, kw_only=True)
class GateConfig:
    """What a challenger must not fall below.

    Args:
        metric: the score that is compared.
        max_loss: of the metric, per row, in nats. With 0 the challenger must be shown better.
        min_coverage: of its 90 % intervals, or sets of classes.
    """

    __pydantic_config__ = STRICT

    metric: Literal["log_likelihood"] = "log_likelihood"
    max_loss: Annotated[float, Interval(ge=0.0, le=100.0)] = 0.0
    min_coverage: Annotated[float, Interval(ge=0.0, le=LEVEL)] = 0.87


@dataclass(frozen=True)
class Scores:
    """Of one model: the log likelihood of each row, and 1 where its interval holds the truth."""

    log_likelihood: Float[Tensor, "rows"]
    covered: Float[Tensor, "rows"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether the challenger passes, why, and what was measured.

    Args:
        rows: that were scored. With too few, there are no bounds.
        score, champion_score: mean log likelihoods, in nats per row.
        difference: challenger − champion; None without a champion.
        lower, upper: one-sided 95 % bounds of the difference.
        coverage_lower, coverage_upper: those of the challenger's coverage.
    """

    passed: bool
    reason: str
    rows: int
    score: float | None = None
    champion_score: float | None = None
    difference: float | None = None
    lower: float | None = None
    upper: float | None = None
    coverage: float | None = None
    coverage_lower: float | None = None
    coverage_upper: float | None = None
    champion_coverage: float | None = None

    def to_json(self) -> Json:
        """All fields; what is not finite is None."""
        return {name: _finite(value) for name, value in asdict(self).items()}


def judge(
    challenger: Scores,
    champion: Scores | None,
    config: GateConfig,
    weights: Weights | None = None,
) -> Verdict:
    """The verdict on a challenger.

    Args:
        champion: on the same rows; None if there is none: then the coverage alone decides.
        weights: of the rows. As many rows count as equal weights would need for the same variance,
            (Σw)² / Σw² (Kish 1965).
    """
    if weights is not None:
        challenger, champion, weights = _weighted(challenger, champion, weights)
    count = len(challenger.log_likelihood)
    rows = float(count) if weights is None else float(weights.sum())
    found: dict[str, Any] = {"rows": count}
    if count:
        found |= _means(challenger, champion, weights)
    if rows < LEAST_ROWS:
        few = f"{rows:.0f} rows are too few to compare: at least {LEAST_ROWS} are needed"
        return Verdict(passed=False, reason=few, **found)
    found |= _bounds(challenger, champion, weights, rows)
    lost = [] if champion is None else _lost(found, config)
    refusals = [*lost, *_uncovered(found, config)]
    reason = "; ".join(refusals) or _praise(found, config)
    return Verdict(passed=not refusals, reason=reason, **found)


def difference_bounds(difference: float, standard_error: float, rows: float) -> tuple[float, float]:
    """The one-sided 95 % bounds of a mean of paired differences, by Student's distribution."""
    if standard_error == 0:
        return difference, difference
    reach = student_quantile(ERROR, rows - 1) * standard_error
    return difference - reach, difference + reach


def coverage_bounds(coverage: float, rows: float) -> tuple[float, float]:
    """The one-sided 95 % bounds of a share of rows, of Clopper and Pearson."""
    count = round(rows)
    hits = round(coverage * count)
    return _lowest(hits, count), 1 - _lowest(count - hits, count)


def student_quantile(tail: float, dof: float) -> float:
    """The t with P(T > t) = `tail`, for tails below a half.

    Newton's method from the normal quantile, which is smaller: the tail is convex there, so that
    every step stays below the solution.
    """
    degrees = torch.tensor(dof, dtype=torch.float64)
    log_scale = math.lgamma(0.5 * (dof + 1)) - math.lgamma(0.5 * dof)
    t = NormalDist().inv_cdf(1 - tail)
    for _ in range(_MOST_STEPS):
        above = float(student_survival(torch.tensor(t, dtype=torch.float64), degrees))
        log_density = log_scale - 0.5 * (dof + 1) * math.log1p(t * t / dof)
        step = (above - tail) * math.sqrt(dof * math.pi) / math.exp(log_density)
        t += step
        if abs(step) < _PRECISION * t:
            break
    return t


def _lowest(hits: int, rows: int) -> float:
    """The smallest share of which so many hits, or more, have a probability of `ERROR`."""
    if hits == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        is_possible = 1 - binomial_up_to(hits - 1, rows, middle) > ERROR
        low, high = (low, middle) if is_possible else (middle, high)
    return 0.5 * (low + high)


def _weighted(
    challenger: Scores, champion: Scores | None, weights: Weights
) -> tuple[Scores, Scores | None, Tensor]:
    """The rows with a weight above 0, with weights whose sum is the number that they count as."""
    kept = weights > 0

    def some(scores: Scores) -> Scores:
        return Scores(scores.log_likelihood[kept], scores.covered[kept])

    chosen = weights[kept].double()
    scale = chosen.sum() / chosen.square().sum() if len(chosen) else 1.0
    return some(challenger), None if champion is None else some(champion), chosen * scale


def _means(
    challenger: Scores, champion: Scores | None, weights: Weights | None
) -> dict[str, float]:
    found = {
        "score": mean(challenger.log_likelihood.double(), weights),
        "coverage": mean(challenger.covered.double(), weights),
    }
    if champion is None:
        return found
    return found | {
        "champion_score": mean(champion.log_likelihood.double(), weights),
        "champion_coverage": mean(champion.covered.double(), weights),
    }


def _bounds(
    challenger: Scores, champion: Scores | None, weights: Weights | None, rows: float
) -> dict[str, float]:
    low, high = coverage_bounds(mean(challenger.covered.double(), weights), rows)
    found = {"coverage_lower": low, "coverage_upper": high}
    if champion is None:
        return found
    pair = paired(challenger.log_likelihood, champion.log_likelihood, weights)
    lower, upper = -math.inf, math.inf
    if math.isfinite(pair.difference):
        lower, upper = difference_bounds(pair.difference, pair.standard_error, rows)
    return found | {"difference": pair.difference, "lower": lower, "upper": upper}


def _lost(found: Mapping[str, Any], config: GateConfig) -> list[str]:
    difference, lower, upper = found["difference"], found["lower"], found["upper"]
    if not math.isfinite(difference):
        return ["a row has a log likelihood that is not finite, so that no mean can be compared"]
    if lower >= -config.max_loss:
        return []
    measured = f"{difference:+.4f} nats per row ({lower:+.4f} to {upper:+.4f})"
    if upper < -config.max_loss:
        return [
            f"its log likelihood is worse by {measured}: more than max_loss {config.max_loss:g}"
        ]
    wanted = "is better" if config.max_loss == 0 else f"loses at most {config.max_loss:g}"
    advice = "more rows or a larger max_loss would decide"
    return [f"its log likelihood differs by {measured}: no proof that it {wanted}; {advice}"]


def _uncovered(found: Mapping[str, Any], config: GateConfig) -> list[str]:
    upper = found["coverage_upper"]
    if upper >= config.min_coverage:
        return []
    measured = f"{found['coverage']:.1%} of the rows, at most {upper:.1%} allowing for chance"
    return [f"its 90 % intervals hold {measured}: below min_coverage {config.min_coverage:g}"]


def _praise(found: Mapping[str, Any], config: GateConfig) -> str:
    covers = f"its 90 % intervals hold {found['coverage']:.1%} of {found['rows']} rows"
    if "difference" not in found:
        return f"there is no champion yet, and {covers}"
    return (
        f"its log likelihood differs by {found['difference']:+.4f} nats per row, and loses at most "
        f"{max(0.0, -found['lower']):.4f} (max_loss {config.max_loss:g}); {covers}"
    )


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value
