"""The section about single held-out rows: predicted against actual, and thresholds of classes."""

from collections.abc import Sequence

from app.ui.charts import Chart, Content, Line, interval_chart, line_chart
from core.database.schema import Json
from models.features.columns import level_text

MOST_LINES = 6  # classes: more lines hide each other


def held_out(card: Json) -> Content:
    """Predicted against actual values, or the curves of classes; empty for versions of releases
    that did not store them, and for other tasks."""
    found = card.get("held_out") or {}
    if found.get("actual"):
        return [], [predicted_against_actual(card, found)]
    if found.get("curves"):
        curves = _in_order(found["curves"][:MOST_LINES], card["classes"] or ())
        return [], [_roc(curves), _precision_recall(curves)]
    return [], []


def predicted_against_actual(card: Json, found: Json) -> Chart:
    """A dot and an interval per row, with those apart whose interval misses the actual value."""
    names = ("actual", "mean", "lower", "upper")
    points = list(zip(*(found[name] for name in names), strict=True))
    missed = [p for p in points if not p[2] <= p[0] <= p[3]]
    inside = [p for p in points if p[2] <= p[0] <= p[3]]
    level = f"{100 * found['level']:g} %"
    target = card["target"]
    return interval_chart(
        "held-out",
        "Predicted against actual",
        f"{len(points)} held-out rows with their {level} intervals. On the dotted line a "
        f"prediction is exact. About {100 - 100 * found['level']:g} % of the intervals should "
        "miss it.",
        f"actual {target}",
        f"predicted {target}",
        [
            (f"inside the interval ({len(inside)})", "inside dots", inside),
            (f"outside ({len(missed)})", "outside dots", missed),
        ],
    )


def at_threshold(curve: Json, threshold: float) -> dict[str, float | None]:
    """Precision and recall of a class if rows with at least this probability are taken for it.

    `thresholds.js` does the same.
    """
    above = sum(value >= threshold for value in curve["threshold"])
    names = ("precision", "recall", "false_positive_rate")
    if not above:
        return dict.fromkeys(names, 0.0) | {"precision": None}
    return {name: curve[name][above - 1] for name in names}


def _in_order(curves: Sequence[Json], classes: Sequence[str | float | bool]) -> list[Json]:
    """The curves in the order of the model's classes, so that a class has one colour everywhere."""
    place = {level_text(name): i for i, name in enumerate(classes)}
    return sorted(curves, key=lambda one: place.get(level_text(one["label"]), len(place)))


def _roc(curves: Sequence[Json]) -> Chart:
    lines: list[Line] = [
        (
            level_text(one["label"]),
            [0.0, *one["false_positive_rate"]],
            [0.0, *one["recall"]],
        )
        for one in curves
    ]
    return line_chart(
        "roc",
        "ROC curve",
        "From left to right the threshold falls: more rows of the class are found (recall), and "
        "more other rows are taken for it (false positives). On the diagonal a model knows "
        "nothing.",
        "false positive rate",
        "recall",
        lines,
        reference=("knows nothing", [0, 1], [0, 1]),
        percent=True,
    )


def _precision_recall(curves: Sequence[Json]) -> Chart:
    lines: list[Line] = [
        (level_text(one["label"]), one["recall"], one["precision"]) for one in curves
    ]
    return line_chart(
        "precision-recall",
        "Precision and recall",
        "From left to right the threshold falls. The curve of a good model stays near the top. "
        "For a rare class it says more than the ROC curve.",
        "recall",
        "precision",
        lines,
        percent=True,
        is_unit=True,
    )
