"""How values stand on a page."""

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
    """Four digits of a fraction, all of a whole number."""
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


def format_bytes(count: int) -> str:
    """In the largest unit of which there is at least one: 1,234,567 is 1.2 MB."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def format_span(seconds: float) -> str:
    """In the largest unit of which there is at least one: 200 s is 3 min."""
    size, unit = next((span for span in _SPANS if seconds >= span[0]), _SPANS[-1])
    count = int(seconds // size)
    return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}"


def format_age(moment: datetime) -> str:
    """How long ago that was."""
    seconds = (datetime.now(UTC) - moment).total_seconds()
    return "just now" if seconds < 1 else f"{format_span(seconds)} ago"


def format_cell(value: object) -> str:
    """A value of the data themselves, which is shown as it is, but for its length."""
    if isinstance(value, float):
        return f"{value:.10g}".replace("-", MINUS)
    text = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"


def script_json(document: Json) -> Markup:
    """JSON to stand within a script element: no `<`, so that nothing can end it early."""
    return Markup(orjson.dumps(document).decode().replace("<", "\\u003c"))  # noqa: S704
