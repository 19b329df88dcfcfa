"""What a picture shows, apart from the library that draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MILLIONS = {1e12: "trillion", 1e9: "billion", 1e6: "million"}
PLAIN = 10_000  # below it no commas: years, too, are numbers

Values = Sequence[Any]  # numbers or times; None is a gap


@dataclass(frozen=True)
class Line:
    """A line through points; a dashed one is for comparison."""

    x: Values
    y: Values
    label: str
    dashed: bool = False


@dataclass(frozen=True)
class Band:
    """The area between two lines; a strong one is drawn darker."""

    x: Values
    low: Values
    high: Values
    label: str
    strong: bool = False


@dataclass(frozen=True)
class Dots:
    """Points; `error` is a standard error in the direction of y, if it is known."""

    x: Values
    y: Values
    label: str
    error: Values | None = None


@dataclass(frozen=True)
class Strips:
    """A horizontal strip from `low` to `high` for each name, from the top down, with a dot in it.

    Attributes:
        marked: strips of another colour, such as rows unlike those of training.
        marked_label: what these are.
    """

    names: Sequence[str]
    low: Sequence[float]
    middle: Sequence[float]
    high: Sequence[float]
    label: str
    marked: Sequence[bool] = ()
    marked_label: str = ""


Mark = Line | Band | Dots | Strips


@dataclass(frozen=True)
class Picture:
    """Marks on common axes, the first one at the back.

    Attributes:
        percent: both axes are of shares.
        x_range: the part of the axis that is shown; by default all.
    """

    title: str
    x: str
    y: str
    marks: Sequence[Mark]
    percent: bool = False
    x_range: tuple[float, float] | None = None


def number_text(value: float, digits: int = 10) -> str:
    """A number as people write it: 12,500 or 1.5 million rather than 1.5e+06.

    Args:
        digits: that count; others become 0.
    """
    value = float(f"{value:.{digits}g}")
    for size, name in MILLIONS.items():
        if size <= abs(value) < 1000 * size:
            return f"{value / size:.10g} {name}"
    return f"{value:,.10g}" if abs(value) >= PLAIN else f"{value:.10g}"


def percent_text(level: float) -> str:
    """A level such as 0.995 as "99.5%"."""
    return f"{100 * level:g}%"
