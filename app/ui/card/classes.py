"""The section on classes: what happens to each of them, the rare ones included."""

from app.ui.card.beside import share_error
from app.ui.charts import Cell, Content, Table
from app.ui.format import with_error
from core.database.schema import Json
from models.features.columns import level_text

SETS = {"set_coverage": "in 90 % sets", "conformal_set_coverage": "in conformal 90 % sets"}
SET_LEVEL = "0.9"
MOST_SHOWN = 20  # classes of the confusion table: more columns are not read


def classes(card: Json) -> Content:
    """Scores by class, thresholds and the confusion table of the full posterior; empty if the
    version has no classes, too many of them, or is of an older release."""
    metrics = card["variants"][0]["metrics"]
    if not metrics.get("by_class"):
        return [], []
    tables = [_by_class(metrics)]
    if metrics.get("thresholds"):
        tables.append(_thresholds(metrics))
    if len(metrics["confusion"]["classes"]) <= MOST_SHOWN:
        tables.append(confusion_table(metrics["confusion"]))
    return tables, []


def _by_class(metrics: Json) -> Table:
    names = ("precision", "average_precision", "auroc")
    sets = [name for name in SETS if name in metrics["by_class"][0]]
    rows: list[list[Cell]] = [
        [
            level_text(one["class"]),
            one["rows"],
            _share(one["recall"], one["rows"]),
            *(one[name] for name in names),
            *(one[name][SET_LEVEL] for name in sets),
        ]
        for one in metrics["by_class"]
    ]
    headers = ("class", "rows", "recall", "precision", "average precision", "AUROC")
    titles = (SETS[name] for name in sets)
    return Table("By class (full posterior)", (*headers, *titles), rows)


def _share(share: float | None, rows: int) -> Cell:
    return None if share is None else with_error(share, share_error(share, rows))


def _thresholds(metrics: Json) -> Table:
    positive = level_text(metrics["positive"])
    headers = (f"probability of {positive} of at least", "recall", "precision", "share of rows")
    names = ("threshold", "recall", "precision", "share")
    rows: list[list[Cell]] = [[one[name] for name in names] for one in metrics["thresholds"]]
    return Table(f"Thresholds for {positive}", headers, rows)


def confusion_table(confusion: Json) -> Table:
    """A row per true class, a column per predicted one, darker for a larger share of its row."""
    names = [level_text(name) for name in confusion["classes"]]
    rows: list[list[Cell]] = [
        [name, *counts] for name, counts in zip(names, confusion["counts"], strict=True)
    ]
    headers = ("truth", *(f"predicted {name}" for name in names))
    shades = [
        [min(5, round(5 * count / max(1e-9, sum(counts)))) for count in counts]
        for counts in confusion["counts"]
    ]
    return Table("Rows by true and predicted class", headers, rows, shades)
