"""How values stand on a page."""

import orjson
from markupsafe import Markup

from app.ui.charts import Cell
from core.schema import Json

MINUS = "−"
_UNITS = ("B", "kB", "MB", "GB", "TB")


def tell(value: Cell) -> str:
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


def tell_bytes(count: int) -> str:
    """In the largest unit of which there is at least one: 1,234,567 is 1.2 MB."""
    size, unit = float(count), 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def script_json(document: Json) -> Markup:
    """JSON to stand within a script element: no `<`, so that nothing can end it early."""
    return Markup(orjson.dumps(document).decode().replace("<", "\\u003c"))  # noqa: S704
