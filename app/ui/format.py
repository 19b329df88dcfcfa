"""Numbers, sizes, times and cells as text on a page."""

import math
import re
from datetime import UTC, datetime

import orjson
from markupsafe import Markup

from app.ui.charts import Cell
from core.database.schema import Json

MINUS = "−"
_MOST_ZEROS, _MOST_LEADING = 15, 4  # digits of a number that is written out, zeros before it
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ("B", "kB", "MB", "GB", "TB")
_SPANS = ((86_400, "day"), (3_600, "h"), (60, "min"), (1, "s"))
_NEGATIVE = re.compile(r"(?<=\s)-(?=\d)")
_MIDNIGHT = re.compile(r"T00:00:00(\.0+)?(Z|\+00:00)$")
_YEAR = re.compile(r"year|jahr|année|annee|año|anno|\bjaar\b|^yr\b|\byr$", re.IGNORECASE)
_MOST_TEXT = 80  # of a cell: the data set has the rest


def format_value(value: Cell) -> str:
    """The text of a cell: a float with four significant digits, an integer with all digits.

    `formatValue` in parts.js writes the same.
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}".replace("-", MINUS)
        case float():
            return _digits(value).replace("-", MINUS)
    return value


def _digits(value: float) -> str:
    """12,280 and 0.0004 rather than 1.228e+04 and 4e-04; 2.1 × 10⁻⁷ for what is far smaller."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    mantissa, exponent = f"{value:.3e}".split("e")
    power = int(exponent)
    if 3 <= power < _MOST_ZEROS:
        return f"{value:,.0f}"
    if -_MOST_LEADING <= power < 3:
        return f"{value:.{3 - power}f}".rstrip("0").rstrip(".")
    return f"{float(mantissa):g} × 10{str(power).translate(_RAISED)}"


def with_error(value: float | None, error: float | None) -> Cell:
    """A value and its standard error, which decides the digits: −1.034 ± 0.024.

    The value alone if the error is not known or 0.
    """
    if value is None or not error or not math.isfinite(error):
        return value
    digits = max(0, 1 - math.floor(math.log10(error)))
    return f"{value:,.{digits}f} ± {error:,.{digits}f}".replace("-", MINUS)


def format_bytes(count: int) -> str:
    """A size in the largest unit that fits: 1,234,567 is 1.2 MB."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def format_span(seconds: float) -> str:
    """A duration in the largest unit that fits: 200 s is 3 min."""
    size, unit = next((span for span in _SPANS if seconds >= span[0]), _SPANS[-1])
    count = int(seconds // size)
    return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}"


def format_age(moment: datetime) -> str:
    """The time since a moment: 3 min ago."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    return "just now" if seconds < 1 else f"{format_span(seconds)} ago"


def format_note(text: str) -> str:
    """A sentence with a minus sign before negative numbers, in place of a hyphen."""
    return _NEGATIVE.sub(MINUS, text)


def is_year(name: str, low: object, high: object) -> bool:
    """Whether a column has years, by its smallest and largest number, and its name.

    A column whose name says nothing has years if all of them are from 1900 to 2100.
    """
    ends = [one for one in (low, high) if isinstance(one, int | float)]
    if len(ends) < 2 or not all(float(one).is_integer() for one in ends):
        return False
    first, last = (1800, 2200) if _YEAR.search(name) else (1900, 2100)
    return first <= ends[0] <= ends[1] <= last


def format_year(value: Cell) -> str:
    """A year, or a mean of years: whole, without a separator of thousands."""
    return f"{value:.0f}" if isinstance(value, int | float) else format_value(value)


def format_time(text: object) -> str:
    """A time without the midnight and the zone that all of its kind have: 2022-12-02."""
    return _MIDNIGHT.sub("", str(text))


def format_cell(value: object) -> str:
    """A value of a data set: unchanged, but cut off if it is long."""
    if isinstance(value, float):
        return f"{value:.10g}".replace("-", MINUS)
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def script_json(document: Json) -> Markup:
    """JSON for a script element. Every `<` is escaped, so that no text can end the element."""
    return Markup(orjson.dumps(document).decode().replace("<", "\\u003c"))  # noqa: S704
