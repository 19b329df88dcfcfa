"""Pictures of predictions: a strip per row, and a band along a feature or the time."""

import statistics
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from math import sqrt
from typing import TYPE_CHECKING, Any

from credence.client.plots.picture import (
    Band,
    Dots,
    Line,
    Mark,
    Picture,
    Strips,
    number_text,
    percent_text,
)
from credence.types import Version

if TYPE_CHECKING:
    from credence.client.arrow import Column
    from credence.client.prediction import Prediction

LINE = 56  # characters of a title's line, which fit above the axes of a small figure
MOST_NAMED = 90  # characters of the typical values in a title, which takes two lines of them
MOST_TEXT = 24  # characters of one value


def intervals(
    prediction: "Prediction", level: float = 0.9, most: int = 30, target: str = "target"
) -> Picture:
    """A strip per row: its interval with the mean; of a classifier the probability of the label.

    Args:
        level: of the interval, one that the prediction has.
        most: rows that are shown, the first ones.
        target: its name, for the axis.

    Raises:
        ValueError: the prediction has no interval of this level.
    """
    table = prediction.table.rows(0, min(most, len(prediction)))
    unlike = list(map(bool, table.to_pylist("out_of_distribution")))
    of = f"{prediction.model} version {prediction.version}"
    if prediction.classes is not None:
        labels = table.to_pylist("label")
        columns = [n for n in table.column_names if n.startswith("probability_")]
        best = [max(row) for row in zip(*map(table.to_pylist, columns), strict=True)]
        names = [f"{i} {label}" for i, label in enumerate(labels)]
        strips = Strips(
            names, [0.0] * len(best), best, best, "probability", unlike, "unlike training"
        )
        return Picture(f"Labels of {of}", "probability of the label", "row", [strips])
    low, high = _bounds(prediction, level)
    shown = slice(0, table.num_rows)
    names = [str(i) for i in range(table.num_rows)]
    label = f"mean and {percent_text(level)} interval"
    strips = Strips(
        names, low[shown], table.to_pylist("mean"), high[shown], label, unlike, "unlike training"
    )
    span = _usual_range(strips)
    return Picture(f"Predictions of {of}", f"{target}: {label}", "row", [strips], x_range=span)


def band(  # noqa: PLR0917 - what is drawn, where, and its words
    prediction: "Prediction",
    x: Sequence[Any],
    names: tuple[str, str],
    known: tuple[Sequence[Any], Sequence[Any]] | None = None,
    level: float = 0.9,
    at: str = "",
) -> Picture:
    """The mean with its interval, and inside it the epistemic part: ± its deviation.

    Args:
        x: the place of each prediction.
        names: of the axes.
        known: places and values that are known, drawn as dots.
        at: what is the same in all rows, for the title.
    """
    low, high = _bounds(prediction, level)
    mean = prediction.table.to_pylist("mean")
    marks: list[Mark] = [Band(x, low, high, f"{percent_text(level)} interval")]
    variances = prediction.table.to_pylist("epistemic_variance")
    if None not in variances:
        spread = [sqrt(v) for v in variances]
        inner = [m - s for m, s in zip(mean, spread, strict=True)]
        outer = [m + s for m, s in zip(mean, spread, strict=True)]
        marks.append(Band(x, inner, outer, "epistemic, ± 1 deviation", strong=True))
    marks.append(Line(x, mean, "mean"))
    if known is not None:
        marks.append(Dots(*known, "known values"))
    title = f"{names[1]} by {names[0]}: {prediction.model} version {prediction.version}{at}"
    return Picture(title, *names, marks)


def grid(
    version: Version, columns: "Mapping[str, Column]", along: str, points: int
) -> dict[str, list[Any]]:
    """Rows along a feature, between its ends in `columns`; the others have typical values.

    These are medians of numbers and times, and the most frequent of other values.

    Raises:
        ValueError: `along` is no feature of numbers, or has no values.
    """
    types = {feature["name"]: feature["type"] for feature in version["features"]}
    if types.get(along) != "number":
        numbers = ", ".join(name for name, type_ in types.items() if type_ == "number")
        raise ValueError(f"{along!r} is no feature of numbers; there are: {numbers or 'none'}")
    values = _known(columns[along].values)
    if not values:
        raise ValueError(f"{along!r} has no values: give rows that have some")
    low, high = min(values), max(values)
    rows = {name: [_typical(columns[name].values, type_)] * points for name, type_ in types.items()}
    return rows | {along: [low + (high - low) * i / (points - 1) for i in range(points)]}


def typical_row(rows: Mapping[str, Sequence[Any]], along: str) -> str:
    """The values of the other features of a grid, for the title: the first, and how many more."""
    values = {name: column[0] for name, column in rows.items() if name != along}
    named = [f"{name} {_short(value)}" for name, value in values.items()]
    shown = [one for i, one in enumerate(named) if len(", ".join(named[: i + 1])) <= MOST_NAMED]
    if not named:
        return ""
    shown = shown or [textwrap.shorten(named[0], MOST_NAMED, placeholder="…")]
    left = len(named) - len(shown)
    text = f"at {', '.join(shown)}{f' and {left} more' if left else ''}"
    return "\n" + textwrap.fill(text, LINE)


def _usual_range(strips: Strips) -> tuple[float, float] | None:
    """The axis of the strips that are not marked: a marked one may be so wide that no other shows.

    None if all are alike.
    """
    usual = [i for i, marked in enumerate(strips.marked) if not marked]
    if len(usual) in (0, len(strips.marked)):
        return None
    low, high = min(strips.low[i] for i in usual), max(strips.high[i] for i in usual)
    margin = 0.05 * (high - low)
    return low - margin, high + margin


def _bounds(prediction: "Prediction", level: float) -> tuple[list[float], list[float]]:
    """The credible bounds as lists, which need no numpy."""
    names = [f"{end}_{level}" for end in ("lower", "upper")]
    if names[0] not in prediction.table.column_names:
        raise ValueError(f"no interval of level {level}: predict with intervals=[{level}]")
    low, high = map(prediction.table.to_pylist, names)
    return low, high


def _typical(values: Sequence[Any], type_: str) -> Any:
    known = _known(values)
    if not known:
        return None
    if type_ == "number":
        return statistics.median(known)
    if type_ == "datetime":
        return statistics.median_low(known)
    return Counter(known).most_common(1)[0][0]


def _known(values: Any) -> list[Any]:
    listed = values if isinstance(values, list) else values.tolist()
    return [value for value in listed if value is not None]


def _short(value: Any) -> str:
    """A value for a title; a time at midnight is a date."""
    if value is None:
        return "missing"
    if isinstance(value, datetime):
        is_date = value.time() == time()
        return f"{value:%Y-%m-%d}" if is_date else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float):
        return number_text(value, 4)
    text = str(value)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"
