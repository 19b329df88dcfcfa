"""Makes answers short: rounded numbers, cut lists, and the scores that matter."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from credence.types import Json

AS_THEY_ARE = ("values", "would_send")  # members that are sent back to the service
DIGITS = 5  # significant: more are noise to an agent, fewer lose what a price has
SCORES = (
    *("rmse", "mae", "crps", "accuracy", "average_precision", "brier", "ece", "mase"),
    *("log_likelihood", "perplexity", "rows"),
)
COVERAGES = {"conformal": "conformal_coverage", "credible": "coverage"}


def rounded(value: Any) -> Any:
    """The value with all its numbers rounded to `DIGITS` significant digits."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return _rounded(value)
        case Mapping():
            return {n: part if n in AS_THEY_ARE else rounded(part) for n, part in value.items()}
        case Sequence():
            return [rounded(part) for part in value]
    return value


def _rounded(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def present(**members: Any) -> Json:
    """The members that say something: None, empty lists and empty objects are left out."""
    return {name: value for name, value in members.items() if value not in (None, [], {}, (), "")}


def first(items: Sequence[Any], most: int, where: str) -> tuple[list[Any], str | None]:
    """The first items, and a sentence that says where the others are; None if there are none."""
    left = len(items) - most
    return list(items[:most]), f"{left} more: {where}" if left > 0 else None


def scores(metrics: Mapping[str, Any]) -> Json:
    """The scores by which a model is judged, and the coverage of each kind of 90 % intervals."""
    found = {name: metrics[name] for name in SCORES if metrics.get(name) is not None}
    for kind, member in COVERAGES.items():
        coverage = (metrics.get(member) or {}).get("0.9")
        if coverage is not None:
            found[f"coverage_of_90_percent_{kind}_intervals"] = coverage
    return found
