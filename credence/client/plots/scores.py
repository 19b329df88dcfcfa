"""Pictures of a version's scores: calibration, and the importance of features."""

from math import sqrt
from typing import Any

from credence.client.plots.picture import Dots, Line, Mark, Picture, Strips
from credence.types import Json, Version

LEVELS = [i / 10 for i in range(1, 10)]
# What contributions are to, of numbers and of classes, and the unit of each.
NUMBERS = {
    "mean": ("the prediction", "units of {target}"),
    "aleatoric": ("the variance of the noise", "squared units of {target}"),
    "epistemic": ("the epistemic variance", "squared units of {target}"),
}
CLASSES = {
    "mean": ("the probability of a class", "1 is certain"),
    "aleatoric": ("the entropy of the noise", "nats"),
    "epistemic": ("the epistemic entropy", "nats"),
}
IDEAL = Line([0.0, 1.0], [0.0, 1.0], "ideal", dashed=True)


def calibration(version: Version, metrics: Json, rows: str = "held-out rows") -> Picture:
    """Confidence and accuracy of classes, or level and coverage of intervals, with the diagonal.

    Error bars are standard errors of shares.

    Args:
        metrics: of the version, or of an evaluation.
        rows: what they were measured on.

    Raises:
        ValueError: there is neither a reliability nor a PIT histogram, such as for texts.
    """
    title = f"Calibration of {version['model']} version {version['version']}, on {rows}"
    if bins := metrics.get("reliability"):
        x = [one["confidence"] for one in bins]
        y = [one["accuracy"] for one in bins]
        counts = [one["rows"] for one in bins]
        names, label = ("confidence", "accuracy"), "bins of rows"
    elif sum(pit := metrics.get("pit") or []):
        x, y, counts = LEVELS, [_covered(pit, level) for level in LEVELS], [sum(pit)] * len(LEVELS)
        names, label = ("level of the central interval", "coverage"), "intervals"
    else:
        raise ValueError(f"{version['model']} has no scores of calibration: {version['task']}")
    errors = [sqrt(p * (1 - p) / n) if n else 0.0 for p, n in zip(y, counts, strict=True)]
    marks: list[Mark] = [IDEAL, Line(x, y, ""), Dots(x, y, label, errors)]
    return Picture(title, *names, marks, percent=True)


def importance(version: Version, part: str = "mean", most: int = 20) -> Picture:
    """The mean size of the contributions of each feature, the largest first, ± standard errors.

    Args:
        part: `mean`, `aleatoric` or `epistemic`: what the features contribute to.
        most: features that are shown.

    Raises:
        ValueError: there is no such part, or importance was not measured.
    """
    parts = ("mean", "aleatoric", "epistemic")
    if part not in parts:
        raise ValueError(f"part {part!r} is none of {', '.join(parts)}")
    found: list[Any] = list(version["importance"].get("features") or [])
    if not found:
        reason = "a training measures it on at least 8 held-out rows of a table"
        raise ValueError(f"{version['model']} has no importance of features: {reason}")
    found = sorted(found, key=lambda one: -one[part])[:most]
    middle = [one[part] for one in found]
    errors = [one[f"{part}_error"] for one in found]
    low = [max(0.0, m - e) for m, e in zip(middle, errors, strict=True)]
    high = [m + e for m, e in zip(middle, errors, strict=True)]
    strips = Strips([one["name"] for one in found], low, middle, high, "± standard error")
    what = {"mean": "prediction", "aleatoric": "noise", "epistemic": "epistemic uncertainty"}[part]
    title = f"What changes the {what} of {version['model']} version {version['version']}"
    quantity, unit = (CLASSES if version.get("classes") else NUMBERS)[part]
    unit = unit.format(target=version["target"])
    return Picture(title, f"mean size of the contribution to {quantity}\n({unit})", "", [strips])


def _covered(pit: list[float], level: float) -> float:
    """The share of targets in the central interval: |F(y) − ½| ≤ ½ level."""
    middle = len(pit) // 2
    half = round(level * middle)
    return float(sum(pit[middle - half : middle + half]) / sum(pit))
