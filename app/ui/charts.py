"""Charts as plotly's JSON, without colours, which the script of the page adds for its theme.

Each chart also has its numbers as a table. The `meta` of a trace is its role, which decides its
style: "reference" is the line of a perfect model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.database.schema import Json

Cell = str | float | None
Line = tuple[str, Sequence[float], Sequence[float | None]]  # its name, x and y
Measured = tuple[str, Json]  # the name of a model or variant, and its metrics

MOST_LETTERS = 20  # of a label beside a bar: on a phone, this is half of the width
_SMALL = 0.01  # below it, plotly would write 20μ in place of 0.00002
MARKED_POINTS = 30  # of a line: the dots of more points overlap


@dataclass(frozen=True)
class Table:
    """A table of numbers. An empty cell is None.

    Args:
        shades: of each cell behind the first one of its row, from 0 to 5; empty without shading.
    """

    caption: str
    headers: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]
    shades: Sequence[Sequence[int]] = ()


@dataclass(frozen=True)
class Chart:
    """A chart. `reading` explains how to read it. `name` is the id of the element."""

    name: str
    title: str
    reading: str
    figure: Json
    table: Table


Content = tuple[Sequence[Table], Sequence[Chart]]  # the content of a section


def line_chart(  # noqa: PLR0917 - a title and two axes
    name: str,
    title: str,
    reading: str,
    x_title: str,
    y_title: str,
    lines: Sequence[Line],
    *,
    reference: Line | None = None,
    percent: bool = False,
    is_unit: bool = False,
    errors: Sequence[Sequence[float | None]] = (),
) -> Chart:
    """Lines over a common axis. With a reference, both axes are shares from 0 to 1.

    Args:
        percent: whether the x axis is a share.
        is_unit: whether both axes are shares from 0 to 1, also without a reference.
        errors: standard errors of each line's y, drawn as bars; empty without any.
    """
    is_unit = is_unit or reference is not None
    traces = [_trace(line) for line in lines]
    for trace, own in zip(traces, errors, strict=False):
        if any(own):
            trace["error_y"] = {"type": "data", "array": [error or 0.0 for error in own]}
    if reference is not None:
        traces.append(_trace(reference) | {"mode": "lines", "meta": "reference"})
    layout = {
        "xaxis": _axis(x_title, percent=percent, is_unit=is_unit),
        "yaxis": _axis(y_title, percent=is_unit, is_unit=is_unit),
        "showlegend": len(traces) > 1,
    }
    rows = [[line[0], *point] for line in lines for point in zip(line[1], line[2], strict=True)]
    table = Table(title, ("series", x_title, y_title), rows)
    return Chart(name, title, reading, {"data": traces, "layout": layout}, table)


def bar_chart(  # noqa: PLR0917 - a title and two axes
    name: str,
    title: str,
    reading: str,
    x_title: str,
    y_title: str,
    starts: Sequence[float],
    width: float,
    counts: Sequence[int],
    *,
    level: float | None = None,
    marks: Sequence[tuple[str, float]] = (),
) -> Chart:
    """A histogram of bins that begin at `starts`.

    Args:
        level: the expected count, drawn as a horizontal line.
        marks: names and places of vertical lines.
    """
    middles = [start + width / 2 for start in starts]
    ends = [start + width for start in starts]
    bars = {"type": "bar", "name": y_title, "x": middles, "y": list(counts), "width": width}
    traces: list[Json] = [bars | {"hovertemplate": "%{y}<extra></extra>"}]
    if level is not None:
        flat = ("expected", [starts[0], ends[-1]], [level, level])
        traces.append(_trace(flat) | {"mode": "lines", "meta": "reference"})
    layout = {
        "xaxis": _axis(x_title),
        "yaxis": _axis(y_title),
        "bargap": 0,
        "showlegend": False,
        "shapes": [_upright(at) for _, at in marks],
        "annotations": [_label(text, at) for text, at in marks],
    }
    cells = zip(starts, ends, counts, strict=True)
    rows: list[list[Cell]] = [[f"{start:.4g} to {end:.4g}", n] for start, end, n in cells]
    table = Table(title, (x_title, y_title), rows)
    return Chart(name, title, reading, {"data": traces, "layout": layout}, table)


def level_chart(name: str, title: str, y_title: str, levels: Sequence[tuple[str, int]]) -> Chart:
    """A bar for the count of each level, the first one on top."""
    counts = [count for _, count in levels]
    bars = {"type": "bar", "orientation": "h", "name": y_title, "x": counts}
    trace = bars | {"y": list(range(len(levels))), "hovertemplate": "%{x}<extra></extra>"}
    layout = _labelled(y_title, [level for level, _ in levels]) | {"bargap": 0.25}
    table = Table(title, ("level", y_title), [list(level) for level in levels])
    return Chart(name, title, "", {"data": [trace], "layout": layout}, table)


def dot_chart(
    name: str,
    title: str,
    reading: str,
    x_title: str,
    values: Sequence[tuple[str, float | None]],
    *,
    errors: Sequence[float | None] | None = None,
    best: float | None = None,
    level: float | None = None,
    log: bool = False,
) -> Chart:
    """A dot for each named value, the first one on top.

    Args:
        errors: standard errors of the values, drawn as bars.
        best: the value whose dots get another style.
        level: the place of a vertical line.
    """
    bars = errors or [None] * len(values)
    dots = [
        (value, place, error)
        for place, ((_, value), error) in enumerate(zip(values, bars, strict=True))
        if value is not None
    ]
    traces = [
        _dots(role, [dot for dot in dots if (dot[0] == best) == chosen])
        for role, chosen in (("dots", False), ("best dots", True))
    ]
    layout = _labelled(x_title, [label for label, _ in values])
    layout["xaxis"] |= {"type": "log"} if log else {}
    layout["shapes"] = [] if level is None else [_upright(level)]
    if errors is None:
        table = Table(title, ("method", x_title), [list(value) for value in values])
    else:
        rows = [[*value, error] for value, error in zip(values, errors, strict=True)]
        table = Table(title, ("method", x_title, "standard error"), rows)
    return Chart(name, title, reading, {"data": traces, "layout": layout}, table)


def _dots(role: str, dots: Sequence[tuple[float, int, float | None]]) -> Json:
    trace: Json = {"type": "scatter", "mode": "markers", "meta": role, "name": ""}
    trace |= {"x": [x for x, _, _ in dots], "y": [y for _, y, _ in dots]}
    if any(error for _, _, error in dots):
        trace["error_x"] = {"type": "data", "array": [error or 0.0 for _, _, error in dots]}
    return trace


def interval_chart(  # noqa: PLR0917 - a title and two axes
    name: str,
    title: str,
    reading: str,
    x_title: str,
    y_title: str,
    groups: Sequence[tuple[str, str, Sequence[Sequence[float]]]],
) -> Chart:
    """A dot with an interval for each point, and the diagonal.

    Args:
        groups: names and roles of traces; of each point x, y, and the ends of its interval.
    """
    traces: list[Json] = [_interval_trace(*group) for group in groups]
    points = [point for _, _, some in groups for point in some]
    ends = [v for x, y, _, _ in points for v in (x, y)] or [0.0, 1.0]
    diagonal = ("exact", [min(ends), max(ends)], [min(ends), max(ends)])
    traces.append(_trace(diagonal) | {"mode": "lines", "meta": "reference"})
    layout = {"xaxis": _axis(x_title), "yaxis": _axis(y_title), "showlegend": True}
    rows: list[list[Cell]] = [[own, *point] for own, _, some in groups for point in some]
    table = Table(title, ("row", x_title, y_title, "from", "to"), rows)
    return Chart(name, title, reading, {"data": traces, "layout": layout}, table)


def _interval_trace(name: str, role: str, points: Sequence[Sequence[float]]) -> Json:
    columns = [[point[i] for point in points] for i in range(4)]
    x, y, lower, upper = columns
    bars = {
        "type": "data",
        "symmetric": False,
        "array": [top - middle for top, middle in zip(upper, y, strict=True)],
        "arrayminus": [middle - low for low, middle in zip(lower, y, strict=True)],
        "width": 0,
    }
    hover = "actual %{x:.4g}, predicted %{y:.4g}<extra></extra>"
    trace: Json = {"type": "scatter", "mode": "markers", "name": name, "meta": role}
    return trace | {"x": x, "y": y, "error_y": bars, "hovertemplate": hover}


def error_chart(  # noqa: PLR0917 - a title and an axis
    name: str,
    title: str,
    reading: str,
    x_title: str,
    values: Sequence[tuple[str, float, float]],
    role: str,
) -> Chart:
    """A bar with its standard error for each named value, the first one on top."""
    bars = {
        "type": "bar",
        "orientation": "h",
        "meta": role,
        "x": [value for _, value, _ in values],
        "y": list(range(len(values))),
        "error_x": {"type": "data", "array": [error for _, _, error in values]},
        "hovertemplate": "%{x:.3g}<extra></extra>",
    }
    layout = _labelled(x_title, [label for label, _, _ in values]) | {"bargap": 0.25}
    if max((abs(value) for _, value, _ in values), default=1.0) < _SMALL:
        layout["xaxis"]["tickformat"] = "~g"
    table = Table(title, ("feature", x_title, "standard error"), [list(row) for row in values])
    return Chart(name, title, reading, {"data": [bars], "layout": layout}, table)


def _labelled(x_title: str, labels: Sequence[str]) -> Json:
    """A layout with a labelled row at each of y = 0, 1, 2, …, the first one on top."""
    rows = {"tickvals": list(range(len(labels))), "ticktext": [plain(label) for label in labels]}
    ends = {"automargin": True, "range": [len(labels) - 0.5, -0.5]}
    return {"xaxis": _axis(x_title), "yaxis": ends | rows, "showlegend": False}


def plain(text: str) -> str:
    """A text from data, shortened and escaped: plotly interprets some HTML."""
    short = text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
    return short.replace("&", "&amp;").replace("<", "&lt;")


def _trace(line: Line) -> Json:
    name, x, y = line
    mode = "lines+markers" if len(x) <= MARKED_POINTS else "lines"
    xs, ys = _columns([(a, b) for a, b in zip(x, y, strict=True) if b is not None])
    return {"type": "scatter", "mode": mode, "name": name, "x": xs, "y": ys}


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _axis(title: str, *, percent: bool = False, is_unit: bool = False) -> Json:
    axis: Json = {"title": {"text": title, "font": {"size": 13}}, "automargin": True}
    if percent:
        axis["tickformat"] = ".0%"
    if is_unit:  # from 0 to 1, with a margin so that dots at the ends are not cut
        axis["range"] = [-0.02, 1.02]
    return axis


def _upright(x: float) -> Json:
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper"}


def _label(text: str, x: float) -> Json:
    return {
        "text": text,
        "x": x,
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "textangle": -60,  # neighbours do not run into each other
    }


def measured_lines(measured: Sequence[Measured], read: Callable[[Json], Line | None]) -> list[Line]:
    """The lines that `read` returns for the metrics of models or variants, with their names."""
    found = ((name, read(metrics)) for name, metrics in measured)
    return [(name, line[1], line[2]) for name, line in found if line is not None]


def variant_metrics(variants: Sequence[Json]) -> list[Measured]:
    """Names and metrics of the variants of a version."""
    return [(variant_name(variant["prune"]), variant["metrics"]) for variant in variants]


def variant_name(prune: float) -> str:
    """The name of a variant for people."""
    return "full posterior" if prune == 0 else f"{100 * prune:g} % pruned"
