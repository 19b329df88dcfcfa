"""The tabs of a version's page: their names, and the sections of the card on each of them."""

from enum import StrEnum

from app.ui.card.beside import scores_beside, verdicts, weak_spots
from app.ui.card.classes import MOST_SHOWN, confusion_table
from app.ui.card.classics import beside
from app.ui.card.held_out import at_threshold
from app.ui.card.page import Section, sections
from core.database.schema import Json

HALF = 0.5  # the threshold that is shown first


class Tab(StrEnum):
    """A tab, as the address names it: `?tab=scores`."""

    OVERVIEW = "overview"
    SCORES = "scores"
    CALIBRATION = "calibration"
    EXPLAIN = "explain"
    VARIANTS = "variants"
    LINEAGE = "lineage"
    USE = "use"


WITHOUT_CARD = (Tab.OVERVIEW, Tab.VARIANTS, Tab.USE)  # for keys that may only predict
SECTIONS = {
    Tab.OVERVIEW: ("held-out",),
    Tab.SCORES: ("scores", "baselines", "classes", "held-out"),
    Tab.CALIBRATION: ("calibration", "coverage", "risk", "out-of-distribution"),
    Tab.EXPLAIN: ("importance",),
    Tab.VARIANTS: ("pruning", "weights"),
    Tab.LINEAGE: ("selection", "learning", "rows", "recipe"),
    Tab.USE: (),
}


def tabs_of(card: Json | None) -> list[Tab]:
    """The tabs that a reader sees."""
    return list(Tab) if card else list(WITHOUT_CARD)


def contents(tab: Tab, card: Json | None) -> Json:
    """The values of a tab's template that follow from the card."""
    if card is None:
        return {"sections": {}}
    shown = card if tab is Tab.VARIANTS else _full_posterior(card)
    found = {section.name: section for section in sections(shown, SECTIONS[tab])}
    if tab is Tab.OVERVIEW:
        return _overview(card, found)
    if tab is Tab.SCORES:
        return {"sections": found, **_scores(card)}
    return {"sections": found}


def _full_posterior(card: Json) -> Json:
    """The card without pruned variants: they have a tab of their own."""
    return card | {name: card[name][:1] for name in ("variants", "out_of_distribution")}


def _overview(card: Json, found: dict[str, Section]) -> Json:
    is_table = card["task"] in ("regression", "classification")
    return {
        "sections": found,
        "scores": scores_beside(card, only_first=is_table),
        "verdicts": verdicts(card),
        "beside": beside(card) if card["task"] == "forecasting" else None,
        "weak": weak_spots(card),
        "confusion": _confusion(card),
    }


def _scores(card: Json) -> Json:
    """The scores beside those of simple methods, and the curves of classes with a first one."""
    curves = (card.get("held_out") or {}).get("curves") or []
    first = _first(card, curves)
    return {
        "scores": scores_beside(card, only_first=False),
        "confusion": _confusion(card),
        "curves": curves,
        "first": first,
        "half": at_threshold(curves[first], HALF) if curves else {},
    }


def _first(card: Json, curves: list[Json]) -> int:
    """The number of the rarer one of two classes, else of the most frequent class."""
    positive = card["variants"][0]["metrics"].get("positive")
    labels = [curve["label"] for curve in curves]
    return labels.index(positive) if positive in labels else 0


def _confusion(card: Json) -> object:
    confusion = card["variants"][0]["metrics"].get("confusion")
    if not confusion or len(confusion["classes"]) > MOST_SHOWN:
        return None
    return confusion_table(confusion)
