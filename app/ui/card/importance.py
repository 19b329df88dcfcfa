"""The section about the importance of features on held-out rows."""

import math

from app.ui.charts import Content, Table, error_chart
from app.ui.format import with_error
from core.database.schema import Json

MOST_BARS = 15
PARTS = {
    "mean": ("What moves the predictions", "mean size of the contributions to the mean"),
    "aleatoric": ("What makes the noise", "… to the aleatoric part"),
    "epistemic": ("What makes epistemic uncertainty", "… to the epistemic part"),
}
UNITS = {
    "mean": ("unit of the target", "probability moved"),
    "aleatoric": ("root, in the unit of the target", "nats"),
    "epistemic": ("root, in the unit of the target", "nats"),
}


def importance(card: Json) -> Content:
    """A chart for each part, and all figures as a table; empty if nothing was measured."""
    features = card["importance"].get("features", [])
    if not features:
        return [], []
    has_classes = bool(card.get("classes"))
    charts = []
    for part, (title, reading) in PARTS.items():
        most = sorted(features, key=lambda one: -one[part])[:MOST_BARS]
        values = [(one["name"], *_in_unit(one, part, has_classes)) for one in most]
        unit = UNITS[part][has_classes]
        charts.append(
            error_chart(f"importance-{part}", title, reading, unit, values, f"bars of {part}")
        )
    headers = ("feature", "mean", "noise", "epistemic", "shares with (association above 0.7)")
    rows = [
        [
            one["name"],
            *(with_error(*_in_unit(one, part, has_classes)) for part in PARTS),
            ", ".join(
                f"{other['name']} ({other['value']:.2f})" for other in one["correlated_with"]
            ),
        ]
        for one in features
    ]
    caption = f"Mean size of the contributions on {card['importance']['rows']} held-out rows"
    return [Table(caption, headers, rows)], charts


def _in_unit(feature: Json, part: str, has_classes: bool) -> tuple[float, float]:
    """An importance and its standard error; of a variance the root, in the target's unit.

    The error of √v is that of v, divided by 2 √v.
    """
    value, error = feature[part], feature[f"{part}_error"]
    if part == "mean" or has_classes:
        return value, error
    root = math.sqrt(max(value, 0.0))
    return root, error / (2 * root) if root else 0.0
