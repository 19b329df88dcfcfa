"""The page of a model card, which stands for itself: it can be kept as one file."""

from app.ui.pages import templates
from app.ui.scores import headline
from app.ui.sections import sections
from core.database.schema import Json


def render_card(card: Json) -> str:
    """HTML of the document that `GET /models/{name}/versions/{version}/card` gives as JSON."""
    return (
        templates()
        .get_template("card.html")
        .render(
            card=card,
            sections=sections(card),
            headline=headline(card["variants"][0]["metrics"]),
        )
    )
