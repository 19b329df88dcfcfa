"""The page of a model card. It can be saved as one file."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.ui.card import classes, comparisons, held_out, importance, posterior, quality, training
from app.ui.charts import Chart, Table
from app.ui.pages import templates
from app.ui.scores import headline
from core.database.schema import Json

BUILDERS = {  # in the order of the page; the words of each section are in sections.html
    "scores": quality.scores,
    "baselines": comparisons.baselines,
    "classes": classes.classes,
    "held-out": held_out.held_out,
    "importance": importance.importance,
    "calibration": quality.calibration,
    "coverage": quality.coverage,
    "risk": quality.risk,
    "pruning": posterior.pruning,
    "out-of-distribution": posterior.out_of_distribution,
    "weights": posterior.signal_to_noise,
    "selection": comparisons.selection,
    "learning": training.learning_curve,
    "rows": training.columns,
    "recipe": training.recipe,
}


@dataclass(frozen=True)
class Section:
    """The tables and charts of a section. If there are none, the page says why."""

    name: str
    tables: Sequence[Table]
    charts: Sequence[Chart]


def sections(card: Json, names: Collection[str] = BUILDERS.keys()) -> list[Section]:
    """Sections of a card, by default all of them."""
    return [Section(name, *build(card)) for name, build in BUILDERS.items() if name in names]


def render_card(card: Json) -> str:
    """HTML of a card.

    Args:
        card: the JSON of `GET /models/{name}/versions/{version}/card`.
    """
    found = headline(card["variants"][0]["metrics"])
    template = templates().get_template("card.html")
    return template.render(card=card, sections=sections(card), headline=found)
