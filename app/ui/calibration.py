"""Charts of calibration: confidence and accuracy of classes, level and coverage of intervals."""

from collections.abc import Sequence

from app.ui.charts import Chart, Line, Measured, line_chart, measured_lines
from core.database.schema import Json

LEVELS = tuple(i / 10 for i in range(1, 10))
DIAGONAL: Line = ("ideal", [0, 1], [0, 1])


def calibration_charts(name: str, measured: Sequence[Measured]) -> list[Chart]:
    """One chart; none if no model has metrics of calibration, such as for texts."""
    if lines := measured_lines(measured, _reliability):
        title, x, y = "Confidence and accuracy", "confidence", "accuracy"
        reading = (
            "Each dot stands for a fifteenth of the held-out rows, sorted by confidence. Below the "
            "diagonal the model is overconfident, above it underconfident."
        )
    elif lines := measured_lines(measured, _coverage):
        title, x, y = "Level and coverage", "level of the central interval", "coverage"
        reading = (
            "The share of targets inside the central credible interval of each level. Below the "
            "diagonal the intervals are too narrow, above it too wide."
        )
    else:
        return []
    return [line_chart(name, title, reading, x, y, lines, reference=DIAGONAL, percent=True)]


def _reliability(metrics: Json) -> Line | None:
    """Confidence and accuracy of a classifier's rows, in bins of rising confidence."""
    bins = metrics.get("reliability")
    return bins and ("", [b["confidence"] for b in bins], [b["accuracy"] for b in bins])


def _coverage(metrics: Json) -> Line | None:
    """Coverage by level, from the PIT histogram: a target is covered if |F(y) − ½| ≤ ½ level."""
    counts = metrics.get("pit")
    if not counts or not sum(counts):
        return None
    middle, rows = len(counts) // 2, sum(counts)
    half = {level: round(level * middle) for level in LEVELS}
    inside = [sum(counts[middle - n : middle + n]) / rows for n in half.values()]
    return "", list(half), inside
