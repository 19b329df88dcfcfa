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
from typing import Annotated, Any, Literal

from annotated_types import Interval
from jaxtyping import Float
from torch import Tensor

from models.config import Json
from models.config.ranges import STRICT
from models.evaluation.weighting import Weights, filled, mean, paired

ERROR = 0.05
"""The rate of each wrong decision, at its boundary."""
LEVEL = 0.9
"""Of the intervals whose coverage counts."""
LEAST_ROWS = 30
"""Fewer are refused: a t-interval of few skewed differences covers less than it says (Boos and
Hughes-Oliver 2000)."""


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
        fields = asdict(self).items()
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields}


def judge(
    challenger: Scores, champion: Scores | None, config: GateConfig, weights: Weights | None = None
) -> Verdict:
    """The verdict on a challenger.

    Args:
        champion: on the same rows; None if there is none: then the coverage alone decides.
        weights: of the rows. As many rows count as equal weights would need for the same variance,
            (Σw)² / Σw² (Kish 1965).
    """
    each = filled(weights, challenger.log_likelihood)
    kept = each > 0
    each, count = each[kept], int(kept.sum())
    each = each * (each.sum() / each.square().sum())
    rows = float(each.sum())
    measures: dict[str, Any] = {"rows": count}
    for prefix, scores in (("", challenger), ("champion_", champion)):
        if scores is not None and count:
            measures[f"{prefix}score"] = mean(scores.log_likelihood[kept], each)
            measures[f"{prefix}coverage"] = mean(scores.covered[kept].double(), each)
    if rows < LEAST_ROWS:
        few = f"{rows:.0f} rows are too few to compare: at least {LEAST_ROWS} are needed"
        return Verdict(passed=False, reason=few, **measures)
    low, high = coverage_bounds(measures["coverage"], rows)
    measures |= {"coverage_lower": low, "coverage_upper": high}
    refusals = []
    if champion is not None:
        both = challenger.log_likelihood[kept], champion.log_likelihood[kept]
        pair, lower, upper = paired(*both, each), -math.inf, math.inf
        if math.isfinite(pair.difference):
            from scipy import special  # noqa: PLC0415 - the settings of a gate do without

            reach = float(special.stdtrit(rows - 1, 1 - ERROR)) * pair.standard_error
            lower, upper = pair.difference - reach, pair.difference + reach
        measures |= {"difference": pair.difference, "lower": lower, "upper": upper}
        refusals += _lost(measures, config)
    if high < config.min_coverage:
        measured = f"{measures['coverage']:.1%} of the rows, at most {high:.1%} allowing for chance"
        refusals.append(
            f"its 90 % intervals hold {measured}: below min_coverage {config.min_coverage:g}"
        )
    reason = "; ".join(refusals) or _praise(measures, config)
    return Verdict(passed=not refusals, reason=reason, **measures)


def coverage_bounds(coverage: float, rows: float) -> tuple[float, float]:
    """The one-sided 95 % bounds of a share of rows, of Clopper and Pearson."""
    from scipy import stats  # noqa: PLC0415 - the settings of a gate do without

    exact = stats.binomtest(round(coverage * round(rows)), round(rows))
    interval = exact.proportion_ci(1 - 2 * ERROR, "exact")
    return float(interval.low), float(interval.high)


def _lost(measures: Mapping[str, Any], config: GateConfig) -> list[str]:
    difference, lower, upper = measures["difference"], measures["lower"], measures["upper"]
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


def _praise(measures: Mapping[str, Any], config: GateConfig) -> str:
    covers = f"its 90 % intervals hold {measures['coverage']:.1%} of {measures['rows']} rows"
    if "difference" not in measures:
        return f"there is no champion yet, and {covers}"
    return (
        f"its log likelihood differs by {measures['difference']:+.4f} nats per row, and loses at "
        f"most {max(0.0, -measures['lower']):.4f} (max_loss {config.max_loss:g}); {covers}"
    )
