"""The scores of a comparison of methods: a table, and a chart for each score."""

from collections.abc import Sequence

from app.ui.charts import Chart, Table, dot_chart
from app.ui.pages import templates
from core.database.schema import Json
from models.evaluation.scores import COMPARED, MEASURES, Score

MOST_RATIO = 30  # between the largest time or size and the smallest, on a linear axis


def render_comparison(model: str, rows: Sequence[Json]) -> str:
    """An HTML page with the charts and the table of a comparison.

    Args:
        rows: from `core.jobs.comparison.table`.
    """
    template = templates().get_template("comparison.html")
    return template.render(model=model, charts=method_charts(rows), table=method_table(rows))


def method_table(rows: Sequence[Json]) -> Table:
    """A row per method, and a column per score that any method has."""
    scores = _known(rows)
    headers = ("method", "version", *(score.title for score in scores))
    cells = [
        [row["name"], row["version"] or row["status"], *(row[score.name] for score in scores)]
        for row in rows
    ]
    return Table("Methods on the same held-out rows", headers, cells)


def method_charts(rows: Sequence[Json]) -> list[Chart]:
    """A chart per score that any method has, with a dot per method. It marks the best one."""
    return [_chart(score, rows) for score in _known(rows) if score.best is not None]


def _known(rows: Sequence[Json]) -> list[Score]:
    scores = (*COMPARED, *MEASURES)
    return [s for s in scores if any(row.get(s.name) is not None for row in rows)]


def _chart(score: Score, rows: Sequence[Json]) -> Chart:
    values = [row.get(score.name) for row in rows]
    known = [value for value in values if value is not None]
    return dot_chart(
        f"method-{score.name.replace('.', '-')}",
        score.label[0].upper() + score.label[1:],
        f"{score.direction.capitalize()}.",
        score.title,
        [(_label(row), value) for row, value in zip(rows, values, strict=True)],
        best=score.choose(values),
        level=score.best if isinstance(score.best, float) else None,
        log=score.is_ratio and min(known) > 0 and max(known) > MOST_RATIO * min(known),
    )


def _label(row: Json) -> str:
    name: str = row["name"]
    return name if row["version"] is not None else f"{name} ({row['status']})"
