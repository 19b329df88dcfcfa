"""Sections about a version on held-out rows: scores, calibration, coverage and risk."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.ui.calibration import calibration_charts
from app.ui.charts import (
    Cell,
    Chart,
    Content,
    Line,
    Table,
    bar_chart,
    line_chart,
    measured_lines,
    variant_metrics,
    variant_name,
)
from app.ui.format import format_value, with_error
from core.database.schema import Json
from models.evaluation.scores import SCORES, Score

CALIBRATED = (
    "width of the intervals, or temperature of the probabilities; conformal intervals or sets"
)
OUT_OF_FOLD = "calibration: the same rows, each predicted by networks that had not learned from it"


def scores(card: Json) -> Content:
    """All scores with standard errors, and the rows that the figures of the card rest on."""
    measured = variant_metrics(card["variants"])
    known = [s for s in SCORES if any(s.name in metrics for _, metrics in measured)]
    titles = [score.title for score in known]

    rows: list[list[Cell]] = [
        [name, *(_scored(score, metrics) for score in known)] for name, metrics in measured
    ]
    return [Table(f"Scores on {_held_out(card)}", ("variant", *titles), rows), _sets(card)], []


def _held_out(card: Json) -> str:
    """What the scores are of."""
    metrics = card["variants"][0]["metrics"]
    return _forecasts(metrics, "held-out steps") if "horizon" in metrics else "held-out rows"


def _forecasts(found: Json, of: str) -> str:
    count, steps = found["origins"], found["horizon"]
    one, ahead = "forecast" if count == 1 else "forecasts", "step" if steps == 1 else "steps"
    return f"{count:,} {one} of {steps:,} {ahead} each, of {of}"


def _scored(score: Score, metrics: Json) -> Cell:
    """A score and its standard error, if it is known."""
    return with_error(score.read(metrics), score.read(metrics.get("standard_errors", {})))


def _sets(card: Json) -> Table:
    """The sets of rows, and what rests on each of them."""
    rows = card["rows"]
    found: list[tuple[str, int | None, str]] = [
        ("learning", rows["learned"], "weights, encoders, table of columns"),
        ("stopping", rows.get("stopping"), "the epoch that is kept, learning curve"),
        ("calibration", rows.get("calibration"), CALIBRATED),
        ("scores", rows["held_out"], "all scores, coverages and curves, thresholds, comparisons"),
    ]
    calibrated = {v["calibration"]["rows"] for v in card["variants"] if v.get("calibration")}
    if not rows.get("calibration") and calibrated:  # of a race: each row is predicted out of fold
        found[2] = (OUT_OF_FOLD, max(calibrated), CALIBRATED)
    cells: list[list[Cell]] = [[name, count, figures] for name, count, figures in found if count]
    what = "windows" if card["task"] == "forecasting" else "rows"
    return Table(f"{what.capitalize()} that the figures rest on", ("set", what, "figures"), cells)


def calibration(card: Json) -> Content:
    """The calibration curve, the histogram of F(y), and what calibration changed."""
    variants = card["variants"]
    charts = calibration_charts("calibration-curve", variant_metrics(variants))
    if pit := variants[0]["metrics"].get("pit"):
        charts.append(_pit(pit))
    return _corrections(card), charts


def _corrections(card: Json) -> list[Table]:
    is_series = card["task"] == "forecasting"
    what = "steps of forecasts" if is_series else "rows"
    headers = ("variant", "correction", f"fitted to {what}", "log likelihood before", "after")
    rows: list[list[Cell]] = []
    for variant in card["variants"]:
        metrics, found = variant["metrics"], variant.get("calibration")
        if found:
            numbers = ((k, v) for k, v in found.items() if k in ("variance_scale", "temperature"))
            values = [f"{k.replace('_', ' ')} {v:.3g}" for k, v in numbers]
            if "conditional_on" in found:
                values.append(f"quantiles by {found['conditional_on']}")
            before = metrics.get("uncalibrated", {}).get("log_likelihood")
            name = variant_name(variant["prune"])
            rows.append([name, ", ".join(values), found["rows"], before, metrics["log_likelihood"]])
    return [Table(f"Corrections, fitted to {_unlearned(card)}", headers, rows)] if rows else []


def _unlearned(card: Json) -> str:
    """The rows that calibrate. Forecasts overlap: their steps are more than those set apart."""
    if card["task"] == "forecasting":
        return "forecasts of steps before the held-out ones, which overlap"
    if card["rows"].get("calibration"):
        return "held-out rows of their own"
    return "the training rows, each predicted by networks that had not learned it"


def _pit(counts: Sequence[int]) -> Chart:
    width = 1 / len(counts)
    expected = sum(counts) * width
    return bar_chart(
        "pit",
        "Targets in their predictive distributions (full posterior)",
        "F(y) of each held-out row. The histogram is flat if the distributions are right: a valley "
        "means too narrow, a hill too wide, a slope shifted. The line is the flat histogram; by "
        f"chance a bin differs from it by √{expected:.3g} = {math.sqrt(expected):.2g} rows.",
        "F(y), probability below the target",
        "held-out rows",
        [i * width for i in range(len(counts))],
        width,
        counts,
        level=expected,
    )


def coverage(card: Json) -> Content:
    """Coverage and size of both kinds of intervals or sets, by level; empty without them."""
    variants, metrics = card["variants"], card["variants"][0]["metrics"]
    shown = [one for one in _SHOWN if metrics.get(one.coverage)]
    tables = [table for one in shown for table in _coverage_tables(variants, one)]
    by_part = (_by_part(metrics, by) for by in ("group", "size", "deviation"))
    return [*tables, *(table for table in by_part if table)], []


@dataclass(frozen=True)
class _Kinds:
    """Names of metrics: the coverage of credible and conformal answers, and what they cost."""

    answer: str
    coverage: str
    size: str
    size_title: str
    conformal_coverage: str
    conformal_size: str


_SHOWN = (
    _Kinds(
        *("interval", "coverage", "interval_width", "width"),
        *("conformal_coverage", "conformal_width"),
    ),
    _Kinds(
        *("set of classes", "set_coverage", "set_size", "number of classes"),
        *("conformal_set_coverage", "conformal_set_size"),
    ),
)


def _coverage_tables(variants: Sequence[Json], names: _Kinds) -> list[Table]:
    metrics = variants[0]["metrics"]
    levels = [float(level) for level in metrics[names.coverage]]
    headers = ("variant", names.answer, *(f"{100 * level:g} %" for level in levels))
    errors = [_two_standard_errors(level, metrics["rows"]) for level in levels]
    by_chance: list[Cell] = ["by chance", "two standard errors", *errors]
    shares = {"credible": names.coverage, "conformal": names.conformal_coverage}
    sizes = {"credible": names.size, "conformal": names.conformal_size}
    title = f"Mean {names.size_title} on held-out rows, by level"
    return [
        Table(
            "Coverage on held-out rows, by level",
            headers,
            [*_by_level(variants, shares), by_chance],
        ),
        Table(title, headers, _by_level(variants, sizes)),
    ]


def _by_part(metrics: Json, by: str) -> Table | None:
    """Coverage of groups, or of thirds of the predictions (`evaluation.group_coverage`)."""
    found = metrics.get(f"coverage_by_{by}")
    if not found:
        return None
    what = found.get("column") or {"size": "predicted mean", "deviation": "predicted deviation"}[by]
    caption = f"Coverage of {100 * found['level']:g} % intervals by {what}"
    headers = (what, "rows", "credible", "conformal", "mean width", "covered")
    return Table(caption, headers, [_part_row(part) for part in found["parts"]])


def _part_row(part: Json) -> list[Cell]:
    shares = (
        with_error(part.get(kind), part.get(f"{kind}_error"))
        for kind in ("coverage", "conformal_coverage")
    )
    name = part["name"]
    if "from" in part:
        name = f"{name} ({format_value(part['from'])} to {format_value(part['to'])})"
    verdict = {True: "yes", False: f"no (p = {part['p_value'] or 0:.1g})", None: None}
    return [name, part["rows"], *shares, part["width"], verdict[part["covered"]]]


def _by_level(variants: Sequence[Json], names: Mapping[str, str]) -> list[list[Cell]]:
    """A row per variant and kind. Cells without a measurement are empty."""
    levels = variants[0]["metrics"][names["credible"]]
    return [
        [variant_name(v["prune"]), kind, *(_cell(v["metrics"][name], level) for level in levels)]
        for v in variants
        for kind, name in names.items()
        if v["metrics"].get(name)
    ]


def _cell(values: Json, level: str) -> Cell:
    """The value of a level. A width that is null is unbounded."""
    if level not in values:
        return None
    return "unbounded" if values[level] is None else float(values[level])


def _two_standard_errors(share: float, rows: int) -> float:
    """Two standard errors of a binomial share."""
    return 2 * math.sqrt(share * (1 - share) / max(1, rows))


def risk(card: Json) -> Content:
    """The risk–coverage curve of each variant."""
    lines = measured_lines(variant_metrics(card["variants"]), _risk_line)
    chart = line_chart(
        "risk-coverage",
        "Risk among the rows that are answered",
        "From right to left, more and more uncertain rows are left out. If the uncertainty "
        "indicates where errors are, the line falls to the left.",
        "coverage (share of rows answered)",
        "risk (RMSE or share of wrong labels)",
        lines,
        percent=True,
    )
    return [], [chart] if lines else []


def _risk_line(metrics: Json) -> Line | None:
    curve = metrics.get("risk_coverage")
    return curve and ("", [p["coverage"] for p in curve], [p["risk"] for p in curve])
