"""Numbers, sizes, times and cells as text on a page."""

import math
from datetime import UTC, datetime

import orjson
from markupsafe import Markup

from app.ui.charts import Cell
from core.database.schema import Json

MINUS = "−"
_UNITS = ("B", "kB", "MB", "GB", "TB")
_SPANS = ((86_400, "day"), (3_600, "h"), (60, "min"), (1, "s"))
_MOST_TEXT = 80  # of a cell: the data set has the rest


def format_value(value: Cell) -> str:
    """The text of a cell: a float with four significant digits, an integer with all digits."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}".replace("-", MINUS)
        case float():
            return f"{value:.4g}".replace("-", MINUS)
    return value


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


def format_cell(value: object) -> str:
    """A value of a data set: unchanged, but cut off if it is long."""
    if isinstance(value, float):
        return f"{value:.10g}".replace("-", MINUS)
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def script_json(document: Json) -> Markup:
    """JSON for a script element. Every `<` is escaped, so that no text can end the element."""
    return Markup(orjson.dumps(document).decode().replace("<", "\\u003c"))  # noqa: S704
