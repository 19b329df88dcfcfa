"""Sums up measured tables beside those of other tools: ratios, their geometric mean, the failures.

A ratio is our loss divided by another's: below 1 we are better. Losses are CRPS, or log loss.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import results

Line = Mapping[str, Any]  # a table, a method and its scores

BEST = "CatBoost"  # its best on a table: quantiles, Gaussian or classes
LINEAR = ("ridge, residuals", "logistic regression")
KINDS = ("credible", "conformal")  # of our intervals; classes have one kind of probabilities
COVERS = (0.88, 0.92)  # of 90 % intervals, overall
COVERS_THIRDS = (0.86, 0.94)  # in each third of the predictions


@dataclass(frozen=True)
class Beside:
    """Our scores on a table, and the losses of the others.

    Args:
        scores: by kind of interval; for classes the only ones, under `credible`.
        best, linear: losses; None if there are none.
    """

    table: str
    scores: Mapping[str, Line]
    best: float | None
    linear: float | None

    def ratio(self, other: float | None) -> float | None:
        """Our loss ÷ another's; None if there is no other."""
        return None if other is None else loss(self.scores["credible"]) / other


def loss(line: Line) -> float:
    """The CRPS or the log loss."""
    return float(line["crps"] if "crps" in line else line["log_loss"])


def beside(ours: Iterable[Line], peers: Sequence[Line]) -> list[Beside]:
    """Our results by table, in the order in which they came; errors are left out."""
    by_table: dict[str, dict[str, Line]] = {}
    for line in ours:
        if "error" not in line:
            by_table.setdefault(line["table"], {})[line["kind"]] = line
    return [
        Beside(
            table,
            scores,
            _least(p for p in peers if p["table"] == table and p["method"].startswith(BEST)),
            _least(p for p in peers if p["table"] == table and p["method"] in LINEAR),
        )
        for table, scores in by_table.items()
    ]


def _least(lines: Iterable[Line]) -> float | None:
    return min((loss(line) for line in lines), default=None)


def summary(found: Sequence[Beside]) -> str:
    """A Markdown table, the worst ratio first, and a line on all tables together."""
    ordered = sorted(found, key=lambda one: one.ratio(one.best) or 0.0, reverse=True)
    headers = (
        "table", "loss", f"÷ {BEST}'s best", "÷ linear", "90 % covers", "conformal", "thirds",
        "impossible", "seconds",
    )  # fmt: skip
    lines = [results.markdown(headers, map(_row, ordered)), "", overall(found)]
    return "\n".join(lines)


def _row(one: Beside) -> list[str]:
    own, conformal = one.scores["credible"], one.scores.get("conformal", {})
    return [
        one.table,
        results.figure(loss(own), 4),
        _figure(one.ratio(one.best)),
        _figure(one.ratio(one.linear)),
        _percent(own.get("cover90")),
        _percent(conformal.get("cover90")),
        " ".join(_percent(share, "") for share in own.get("thirds", ())) or "–",
        _percent(own.get("impossible")),
        f"{own['seconds']:.0f}",
    ]


def overall(found: Sequence[Beside]) -> str:
    """The geometric mean of the ratios, the worst, and how many aims are reached."""
    ratios = {one.table: ratio for one in found if (ratio := one.ratio(one.best)) is not None}
    if not ratios:
        return f"no table beside {BEST}"
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    worst = max(ratios, key=ratios.__getitem__)
    wins = sum(ratio < 1 for ratio in ratios.values())
    numbers = [one for one in found if "cover90" in one.scores["credible"]]
    parts = [
        f"better than {BEST}'s best on {wins} of {len(ratios)} tables",
        f"geometric mean {mean:.3f}",
        f"worst {ratios[worst]:.3f} ({worst})",
        f"better than linear on {_wins_over_linear(found)}",
    ]
    parts += [
        f"{kind} 90 % intervals within the aim on {sum(_covers(n, kind) for n in numbers)} "
        f"of {sum(kind in n.scores for n in numbers)}"
        for kind in KINDS
        if any(kind in n.scores for n in numbers)
    ]
    return "; ".join(parts)


def _wins_over_linear(found: Sequence[Beside]) -> str:
    ratios = [ratio for one in found if (ratio := one.ratio(one.linear)) is not None]
    return f"{sum(ratio < 1 for ratio in ratios)} of {len(ratios)}"


def _covers(one: Beside, kind: str) -> bool:
    """Whether the intervals cover what they should, overall and in each third."""
    if kind not in one.scores:
        return False
    scores = one.scores[kind]
    return COVERS[0] <= scores["cover90"] <= COVERS[1] and all(
        COVERS_THIRDS[0] <= share <= COVERS_THIRDS[1] for share in scores["thirds"]
    )


def _figure(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3f}"


def _percent(share: float | None, unit: str = " %") -> str:
    return "–" if share is None else f"{100 * share:.1f}{unit}"
