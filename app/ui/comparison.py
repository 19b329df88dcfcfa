"""The scores of a comparison of methods: a table, and a chart for each score."""

from collections.abc import Sequence

from app.ui.charts import Cell, Chart, Table, dot_chart
from app.ui.format import format_value, with_error
from app.ui.pages import templates
from app.ui.scores import clear_best
from core.database.schema import Json
from models.evaluation.scores import COMPARED, MEASURES, Score

PAIRED = (
    "compared with the highest",
    "behind the highest, nats per row",
)  # by log likelihood, in pairs
MOST_RATIO = 30  # between the largest time or size and the smallest, on a linear axis


def render_comparison(model: str, rows: Sequence[Json]) -> str:
    """An HTML page with the charts and the table of a comparison.

    Args:
        rows: from `core.jobs.comparison.table`.
    """
    template = templates().get_template("comparison.html")
    return template.render(
        model=model,
        charts=method_charts(rows),
        table=method_table(rows),
        statement=statement(rows),
    )


def statement(rows: Sequence[Json]) -> str:
    """What the comparison in pairs shows, as sentences; empty if it was not possible."""
    compared = [row for row in rows if row.get("verdict")]
    if not compared:
        return ""
    best = next(row for row in compared if row["verdict"] == "best")
    equal = [row["name"] for row in compared if row["verdict"] == "no difference"]
    worse = [row["name"] for row in compared if row["verdict"] == "worse"]
    on_rows = f"By log likelihood on {best['compared_rows']:,} rows"
    if equal:
        names = _list([best["name"], *equal])
        sentences = [f"{on_rows}, {names} cannot be told apart: chance explains the differences."]
    else:
        sentences = [f"{on_rows}, {best['name']} is best."]
    if worse:
        sentences.append(
            f"Worse: {_list(worse)} (compared row by row; at most 5 % of comparisons wrongly call "
            "a method worse)."
        )
    sentences.append(
        f"The highest of {len(compared)} scores is partly luck: that of {best['name']} is too high "
        f"by about {best['optimism']:.2g} nats. On other rows expect about "
        f"{format_value(best['log_likelihood'] - best['optimism'])}."
    )
    return " ".join(sentences)


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def method_table(rows: Sequence[Json]) -> Table:
    """A row per method, and a column per score that any method has."""
    scores = _known(rows)
    is_paired = any(row.get("verdict") for row in rows)
    headers = (
        "method",
        "version",
        *(PAIRED if is_paired else ()),
        *(score.title for score in scores),
    )
    cells = [
        [
            row["name"],
            row["version"] or row["status"],
            *(_paired(row) if is_paired else ()),
            *(_with_error(row, score) for score in scores),
        ]
        for row in rows
    ]
    return Table("Methods on the same held-out rows", headers, cells)


def _paired(row: Json) -> list[Cell]:
    if row.get("difference") is None:
        return [None, None]
    if row["verdict"] == "best":
        return ["highest score", None]
    words = {"worse": "worse", "no difference": "no difference to be seen"}
    return [
        words[row["verdict"]],
        with_error(row["difference"], row["difference_error"]),
    ]


def _with_error(row: Json, score: Score) -> Cell:
    return with_error(row[score.name], _error(row, score))


def _error(row: Json, score: Score) -> float | None:
    error: float | None = row.get("standard_errors", {}).get(score.name)
    return error


def method_charts(rows: Sequence[Json]) -> list[Chart]:
    """A chart per score that any method has, with a dot and its standard error per method. It marks
    the best one if chance does not explain the difference."""
    return [_chart(score, rows) for score in _known(rows) if score.best is not None]


def _known(rows: Sequence[Json]) -> list[Score]:
    scores = (*COMPARED, *MEASURES)
    return [s for s in scores if any(row.get(s.name) is not None for row in rows)]


def _chart(score: Score, rows: Sequence[Json]) -> Chart:
    values = [row.get(score.name) for row in rows]
    known = [value for value in values if value is not None]
    errors = [_error(row, score) for row in rows]
    has_errors = any(error is not None for error in errors)
    is_measure = score in MEASURES  # times and sizes: exact enough without an error
    best = score.choose(values) if is_measure else clear_best(score, values, errors)
    return dot_chart(
        f"method-{score.name.replace('.', '-')}",
        score.label[0].upper() + score.label[1:],
        f"{score.direction.capitalize()}.",
        score.title,
        [(_label(row), value) for row, value in zip(rows, values, strict=True)],
        errors=errors if has_errors else None,
        best=best,
        level=score.best if isinstance(score.best, float) else None,
        log=score.is_ratio and min(known) > 0 and max(known) > MOST_RATIO * min(known),
    )


def _label(row: Json) -> str:
    name: str = row["name"]
    return name if row["version"] is not None else f"{name} ({row['status']})"
