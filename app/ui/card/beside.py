"""How good a version is, beside what anyone could have had, and for which rows it is not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.ui.card import classics
from app.ui.card.comparisons import KINDS
from app.ui.charts import Cell, Table
from app.ui.format import format_value, with_error
from app.ui.scores import error_of
from core.database.schema import Json
from models.evaluation.scores import SCORES, Score
from models.features.columns import level_text

FIRST = ("accuracy", "rmse", "mae", "crps", "log_likelihood", "auroc", "coverage_0.9")
_REPEATED = ("ece_adaptive_debiased", "expected_log_likelihood")  # say what others say
_NAMES = KINDS | {"constant": "a constant", "linear": "a linear model"}
_PARTS = {
    "group": "a group",
    "size": "predictions that are",
    "deviation": "predictions whose deviation is",
}
_PROPER = {"regression": "CRPS", "forecasting": "CRPS", "classification": "log likelihood"}


@dataclass(frozen=True)
class Verdict:
    """What the comparison with a simple method says: `better`, `worse` or `equal`, and in words."""

    kind: str
    text: str


def scores_beside(card: Json, *, only_first: bool) -> Table:
    """A row per score, a column for this model and for each simple method.

    Args:
        only_first: whether only the scores of the overview are wanted.
    """
    measured = [card["variants"][0]["metrics"], *(one["metrics"] for one in card["baselines"])]
    known = [s for s in SCORES if any(s.read(metrics) is not None for metrics in measured)]
    known = [score for score in known if score.best is not None and score.name not in _REPEATED]
    if only_first:
        known = [score for score in known if score.name in FIRST]
    rows: list[list[Cell]] = [
        [
            score.title if only_first else _title(score),
            *(_cell(score, metrics) for metrics in measured),
        ]
        for score in known
    ]
    methods = (KINDS.get(one["kind"], one["kind"]) for one in card["baselines"])
    return Table("Scores on the same held-out rows", ("score", "this model", *methods), rows)


def _title(score: Score) -> str:
    return f"{score.title} ({score.direction})" if isinstance(score.best, str) else score.title


def _cell(score: Score, metrics: Json) -> Cell:
    return with_error(score.read(metrics), error_of(score, metrics))


def verdicts(card: Json) -> list[Verdict]:
    """A sentence per simple method, the best method first; empty if none was fitted."""
    is_series = card["task"] == "forecasting"
    methods = classics.compared(card) if is_series else card["baselines"]
    found = [one for one in methods if one.get("advantage") is not None]
    score, what = _PROPER.get(card["task"], "score"), "step" if is_series else "row"
    return [_verdict(one, score, what) for one in sorted(found, key=lambda one: one["advantage"])]


def _verdict(baseline: Json, score: str, what: str) -> Verdict:
    kind, difference = baseline["kind"], baseline["advantage"]
    name = _NAMES.get(kind, kind)
    error = baseline.get("advantage_error") or 0.0
    by = format_value(with_error(abs(difference), error))
    if abs(difference) <= error:
        return Verdict("equal", f"As good as {name} within the standard error (difference {by})")
    if abs(difference) <= 2 * error:
        side = "better" if difference > 0 else "worse"
        return Verdict("equal", f"Perhaps {side} than {name}: {by} {score} per {what}")
    kind = "better" if difference > 0 else "worse"
    share = _share(baseline, score)
    if share is None:
        return Verdict(kind, f"{kind.capitalize()} than {name} by {by} {score} per {what}")
    if share < -1:
        sized = f"errors {1 - share:.1f} times as large"
    else:
        sized = f"errors {100 * abs(share):.0f} % {'smaller' if share > 0 else 'larger'}"
    return Verdict(kind, f"{kind.capitalize()} than {name}: {sized} ({score} by {by} per {what})")


def _share(baseline: Json, score: str) -> float | None:
    """The advantage as a share of the simple method's CRPS; None if it is another score."""
    crps = baseline.get("metrics", {}).get("crps")
    return baseline["advantage"] / crps if score == "CRPS" and crps else None


def weak_spots(card: Json) -> list[str]:
    """Sentences about rows for which the model is worse: groups, sizes and classes."""
    metrics = card["variants"][0]["metrics"]
    by_part = (_parts(metrics, by) for by in _PARTS)
    return [*(text for texts in by_part for text in texts), *_weak_classes(metrics)]


def _parts(metrics: Json, by: str) -> Sequence[str]:
    found = metrics.get(f"coverage_by_{by}") or {}
    what, level = found.get("column") or _PARTS[by], 100 * found.get("level", 0.9)
    return [
        f"{what} {part['name']}: {format_value(100 * part['coverage'])} % of {part['rows']} "
        f"held-out rows are inside their {level:g} % intervals, which chance does not explain"
        for part in found.get("parts", ())
        if part["covered"] is False
    ]


def _weak_classes(metrics: Json) -> Sequence[str]:
    """Classes whose recall is below the accuracy by more than two standard errors."""
    accuracy = metrics.get("accuracy")
    known = [one for one in metrics.get("by_class", ()) if one["recall"] is not None]
    return [
        _weak_class(one, accuracy)
        for one in known
        if accuracy is not None
        and one["recall"] + 2 * share_error(one["recall"], one["rows"]) < accuracy
    ]


def _weak_class(one: Json, accuracy: float) -> str:
    error = share_error(one["recall"], one["rows"])
    recall = format_value(with_error(100 * one["recall"], 100 * error))
    return (
        f"{level_text(one['class'])}: only {recall} % of its {one['rows']} held-out rows are "
        f"recognised; of all rows {100 * accuracy:.0f} %"
    )


def share_error(share: float, rows: int) -> float:
    """The standard error of a share, by Agresti and Coull, which is not 0 at 0 or 1."""
    centre = (share * rows + 2) / (rows + 4)
    return math.sqrt(centre * (1 - centre) / rows)
