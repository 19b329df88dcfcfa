"""Predictions as a table for people: deviations and intervals in the target's unit."""

import json
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from credence.digits import digits
from credence.intervals import interval_columns
from credence.rendering import GAP, output, print_line, print_table, table_width
from credence.strips import CELLS, strips

if TYPE_CHECKING:
    from credence.client.arrow import Table

UNUSUAL = "bold yellow"  # rows unlike those of training, and rows to abstain from
MARKS = {"out_of_distribution": "unlike training", "abstained": "abstained", "ask": "ask"}
DECISIONS = {"action": "action", "expected_cost": "expected\ncost"}
PARTS = {
    "contribution_": "mean",
    "aleatoric_contribution_": "aleatoric",
    "epistemic_contribution_": "epistemic",
}
STRONGEST = 3  # features in a cell
CLASSES = {
    "label": "label",
    "expected_entropy": "expected\nentropy (nats)",
    "mutual_information": "mutual\ninformation (nats)",
}
TEXTS = {
    "perplexity": "perplexity",
    "log_likelihood": "log likelihood (nats)",
    "next_token": "next token",
    "next_probability": "probability",
}
ASKED = {
    "exceeds": "above",
    "any_above": "ever above",
    "any_below": "ever below",
    "quantile": "quantile",
}
GROUP = "group"  # the column with the names of groups of series
TOTAL = "total_"  # columns of sums over the steps of a forecast
ANOMALY = "anomaly_"  # columns of the newest values of a forecast's history
BARS, HEIGHTS = 16, "▁▂▃▄▅▆▇█"  # of the drawing of a density
Columns = dict[str, Sequence[Any]]


def print_prediction(table: "Table", first_row: int) -> None:
    """Print a table of predictions; rows are counted from `first_row`.

    A mark and a colour show rows that are unlike those of training or too uncertain.
    """
    about = table.metadata
    title = (
        f"{about['model']} version {about['version']}, "
        f"{float(about['prune']):.0%} pruned, {_drawn(about)}"
    )
    columns: Columns = {"row": range(first_row, first_row + table.num_rows)}
    kept = json.loads(about.get("kept", "[]"))
    columns |= {name: table.to_pylist(name) for name in kept}
    table = table.without(kept) if kept else table
    styles = [""] * table.num_rows
    if "perplexity" in table.column_names:
        columns |= _named(table, TEXTS)
    else:
        columns |= _classes(table) if "label" in table.column_names else _numbers(table)
        columns |= _contributions(table)
        columns |= _named(table, DECISIONS) if "action" in table.column_names else {}
        drawn = _strips(table)
        if table_width(columns) + GAP + CELLS + GAP + max(map(len, MARKS.values())) <= output.width:
            columns |= drawn
        columns["!"] = _marks(table)
        styles = [UNUSUAL if mark else "" for mark in columns["!"]]
    print_table(list(columns), zip(*columns.values(), strict=True), title, styles)
    if f"{ANOMALY}p_value" in table.column_names:
        _print_anomalies(table)
    if "reasons" in table.column_names:
        _print_reasons(table.to_pylist("reasons"), first_row)


def _print_reasons(reasons: Sequence[Sequence[dict[str, Any]]], first_row: int) -> None:
    """Print a line for each row that says why it is unlike those of training."""
    for number, row in enumerate(reasons, first_row):
        if row:
            words = "; ".join(reason["text"] for reason in row)
            print_line(f"row {number}: {words}", output, UNUSUAL)


def _print_anomalies(table: "Table") -> None:
    """Print the newest values of each series with their p-values."""
    from credence.client.anomalies import first_rows  # noqa: PLC0415 - with nanoarrow

    names = ("time", "value", "p_value", "surprise", "flagged")
    lists = {name: table.to_pylist(f"{ANOMALY}{name}") for name in names}
    keys = table.to_pylist("series") if "series" in table.column_names else None
    rows = [
        ([] if keys is None else [keys[i]])
        + [_written(time), *numbers, "unusual" if is_flagged else ""]
        for i in first_rows(table)
        for time, *numbers, is_flagged in zip(*(lists[n][i] for n in names), strict=True)
    ]
    headers = ["time", "value", "p-value", "surprise\n(bits)", "!"]
    styles = [UNUSUAL if row[-1] else "" for row in rows]
    print_table([*([] if keys is None else ["series"]), *headers], rows, "newest values", styles)


def _written(time: Any) -> Any:
    return time.isoformat() if hasattr(time, "isoformat") else time


def _numbers(table: "Table") -> Columns:
    if targets := json.loads(table.metadata.get("targets", "[]")):
        return _of_targets(table, targets)
    columns: Columns = {}
    if len(set(names := _series(table))) > 1:
        columns["series"] = names
    if "time" in table.column_names:
        columns["time"] = list(map(_written, table.to_pylist("time")))
    columns["mean"] = table.to_pylist("mean")
    if "median" in table.column_names:
        columns["median"] = table.to_pylist("median")
    for kind in ("aleatoric", "epistemic"):
        columns[f"{kind}\ndeviation"] = list(map(_root, table.to_pylist(f"{kind}_variance")))
    for (kind, level), ends in interval_columns(table.column_names).items():
        header = f"{float(level):.0%}\n{'interval' if kind == 'credible' else kind}"
        columns[header] = _spans(table, ends)
    return columns | _asked(table) | _totals(table)


def _strips(table: "Table") -> Columns:
    """A drawing of each interval of the first level, on a terminal."""
    known = interval_columns(table.column_names)
    level = next((level for kind, level in known if kind == "credible"), None)
    if level is None or not output.is_terminal:
        return {}
    first, last = known["credible", level]
    lower, mean, upper = map(table.to_pylist, (first, "mean", last))
    unlike = list(map(bool, table.to_pylist("out_of_distribution")))
    axis, drawn = strips(lower, mean, upper, unlike)
    return {f"{float(level):.0%} interval\n{axis}": drawn} if axis else {}


def _series(table: "Table") -> list[str]:
    """The key of each row's series, or the name of its group."""
    if "series" not in table.column_names:
        return []
    keys = table.to_pylist("series")
    groups = table.to_pylist(GROUP) if GROUP in table.column_names else [None] * len(keys)
    return [key if group is None else group for key, group in zip(keys, groups, strict=True)]


def _root(variance: float | None) -> float | None:
    """The deviation; groups of series have no parts of it."""
    return None if variance is None else sqrt(variance)


def _of_targets(table: "Table", targets: Sequence[str]) -> Columns:
    """The mean of each of several targets, and the intervals that hold together."""
    columns: Columns = {}
    for target in targets:
        columns[f"{target}\nmean"] = table.to_pylist(f"target.{target}.mean")
        known = interval_columns(table.column_names, f"joint.{target}.")
        for (_, level), ends in known.items():
            columns[f"{target}\n{float(level):.0%} together"] = _spans(table, ends)
    return columns


def _asked(table: "Table") -> Columns:
    """Probabilities of thresholds, quantiles, and a drawing of each density."""
    columns: Columns = {}
    for name in table.column_names:
        kind, _, value = name.rpartition("_")
        if kind in ASKED:
            columns[f"{ASKED[kind]}\n{float(value):g}"] = table.to_pylist(name)
    if "density" in table.column_names:
        each = zip(*map(table.to_pylist, ("density_values", "density")), strict=True)
        columns["density"] = [_drawing(values, density) for values, density in each]
    return columns


def _totals(table: "Table") -> Columns:
    """Of sums from the first step on: mean, intervals, and probabilities of thresholds."""
    if f"{TOTAL}mean" not in table.column_names:
        return {}
    columns: Columns = {"total\nmean": table.to_pylist(f"{TOTAL}mean")}
    for (kind, level), ends in interval_columns(table.column_names, TOTAL).items():
        which = "interval" if kind == "credible" else kind
        columns[f"total\n{float(level):.0%} {which}"] = _spans(table, ends)
    for name in (name for name in table.column_names if name.startswith(TOTAL)):
        kind, _, value = name.removeprefix(TOTAL).rpartition("_")
        if kind in ("exceeds", "quantile"):
            what = "above" if kind == "exceeds" else kind
            columns[f"total\n{what} {float(value):g}"] = table.to_pylist(name)
    return columns


def _drawing(values: list[Any] | None, density: list[Any] | None) -> str:
    """Bars at evenly spread values, each as high as the density of the nearest of `values`."""
    if not (values and density) or None in (*values, *density):  # of a group, or it diverges
        return ""
    low, high, highest = values[0], values[-1], max(density) or 1.0
    bars = []
    for i in range(BARS):
        value = low + (high - low) * i / (BARS - 1)
        nearest = min(range(len(values)), key=lambda j: abs(values[j] - value))
        bars.append(HEIGHTS[round((len(HEIGHTS) - 1) * density[nearest] / highest)])
    return f"{digits(low, 3)} {''.join(bars)} {digits(high, 3)}"


def _classes(table: "Table") -> Columns:
    """The most probable class, its probability and the entropies."""
    names = [name for name in table.column_names if name.startswith("probability_")]
    probabilities = zip(*map(table.to_pylist, names), strict=True)
    named = _named(table, CLASSES)
    best = {"label": named.pop("label"), "probability": list(map(max, probabilities))}
    return best | _sets(table) | named


def _sets(table: "Table") -> Columns:
    """The sets of classes, most probable first."""
    columns: Columns = {}
    for name in table.column_names:
        kind, found, level = name.rpartition("set_")
        if found and kind in ("", "conformal_"):
            header = f"{float(level):.0%}\n{'conformal ' if kind else ''}set"
            columns[header] = [", ".join(map(str, row)) for row in table.to_pylist(name)]
    return columns


def _named(table: "Table", headers: dict[str, str]) -> Columns:
    return {header: table.to_pylist(name) for name, header in headers.items()}


def _contributions(table: "Table") -> Columns:
    """The strongest contributions of each row, if it is explained."""
    return {
        f"{what}\nby feature": [_strongest(row) for row in rows]
        for prefix, what in PARTS.items()
        if (rows := _by_feature(table, prefix))
    }


def _by_feature(table: "Table", prefix: str) -> list[dict[str, float | None]]:
    names = [n for n in table.column_names if n.startswith(prefix)]
    features = [name.removeprefix(prefix) for name in names]
    rows = zip(*map(table.to_pylist, names), strict=True)
    return [dict(zip(features, row, strict=True)) for row in rows]


def _strongest(values: dict[str, float | None]) -> str:
    known = {name: value for name, value in values.items() if value}
    order = sorted(known, key=lambda name: -abs(known[name]))
    return "\n".join(f"{name} {_signed(known[name])}" for name in order[:STRONGEST])


def _signed(value: float) -> str:
    return ("+" if value > 0 else "") + digits(value, 3)


def _spans(table: "Table", ends: tuple[str, str]) -> list[str]:
    return [_span(*both) for both in zip(*map(table.to_pylist, ends), strict=True)]


def _span(lower: float | None, upper: float | None) -> str:
    """Unbounded where too few rows were left for calibration."""
    return "unbounded" if lower is None or upper is None else f"{digits(lower)} to {digits(upper)}"


def _marks(table: "Table") -> list[str]:
    known = [name for name in MARKS if name in table.column_names]
    return [
        ", ".join(MARKS[name] for name, marked in zip(known, row, strict=True) if marked)
        for row in zip(*map(table.to_pylist, known), strict=True)
    ]


def _drawn(about: Mapping[str, str]) -> str:
    """How the predictions were computed: moments draw nothing."""
    return "moments" if about["samples"] == "0" else f"{about['samples']} samples"
