"""The page of a model card."""

import orjson

from app.ui.charts import Cell
from app.ui.pages import ASSETS_URL, PLOTLY_URL, templates
from app.ui.sections import sections
from core.release import release
from core.schema import Json

MINUS = "−"


def render_card(card: Json) -> str:
    """HTML of the document that `GET /models/{name}/versions/{version}/card` gives as JSON."""
    template = templates().get_template("card.html")
    return template.render(
        card=card,
        sections=sections(card),
        cell=tell,
        is_number=is_number,
        figure=figure,
        assets=ASSETS_URL,
        plotly=PLOTLY_URL,
        release=release(),
    )


def tell(value: Cell) -> str:
    """Four digits of a fraction, all of a whole number."""
    match value:
        case None:
            return ""
        case int():
            return f"{value:,}".replace("-", MINUS)
        case float():
            return f"{value:.4g}".replace("-", MINUS)
    return value


def is_number(value: Cell) -> bool:
    return isinstance(value, int | float)


def figure(document: Json) -> str:
    """JSON to stand within a script element: no `<`, so that nothing can end it early."""
    return orjson.dumps(document).decode().replace("<", "\\u003c")
