"""Sections about what a version was compared with: simple methods, and candidates of its recipe."""

from collections.abc import Sequence

import orjson

from app.ui.card import classics
from app.ui.charts import Cell, Chart, Content, Table, dot_chart, variant_name
from app.ui.format import with_error
from core.database.schema import Json
from models.evaluation.scores import SCORES, Score

PROPER = ("crps", "log_likelihood")  # by which a model is compared; numbers have the first
ADVANTAGE = "this model is better by, per row"  # CRPS or log likelihood
KINDS = {
    "constant": "constant",
    "linear": "linear model",
    "boosted_trees": "boosted trees",
}


def baselines(card: Json) -> Content:
    """The scores of the version and of simple methods; empty if there are no such methods."""
    if card["task"] == "forecasting":
        return classics.baselines(card)
    found = card["baselines"]
    if not found:
        return [], []
    measured = [one["metrics"] for one in found]
    known = [s for s in SCORES if any(s.read(metrics) is not None for metrics in measured)]
    known = [score for score in known if score.best is not None]
    variants = [v for v in card["variants"] if v["prune"] in (0.0, card["recommended_variant"])]
    rows: list[list[Cell]] = [
        ["this model" if v["prune"] == 0 else variant_name(v["prune"])]
        + [card["rows"]["learned"], None, None]
        + [score.read(v["metrics"]) for score in known]
        for v in variants
    ]
    rows += [
        [KINDS[one["kind"]], one["rows"], one["seconds"], _advantage(one)]
        + [score.read(one["metrics"]) for score in known]
        for one in found
    ]
    headers = (
        "method",
        "rows learned from",
        "seconds",
        ADVANTAGE,
        *(score.title for score in known),
    )
    tables = [Table("Simple methods on the same held-out rows", headers, rows)]
    proper = next(score for score in known if score.name in PROPER)
    values = [(str(row[0]), row[headers.index(proper.title)]) for row in rows]
    return tables, [_chart(proper, values)]


def _advantage(baseline: Json) -> Cell:
    return with_error(baseline.get("advantage"), baseline.get("advantage_error"))


def _chart(score: Score, values: Sequence[tuple[str, Cell]]) -> Chart:
    """A dot per method, the best one marked."""
    numbers = [(name, value) for name, value in values if isinstance(value, float)]
    return dot_chart(
        f"baselines-{score.name.replace('_', '-')}",
        f"{score.label[0].upper()}{score.label[1:]} beside simple methods",
        f"{score.direction.capitalize()}.",
        score.title,
        numbers,
        best=score.choose([value for _, value in numbers]),
    )


def selection(card: Json) -> Content:
    """A row per candidate, the best first; empty if nothing was compared."""
    found = card["selection"]
    candidates = sorted(found["candidates"], key=lambda one: one["score"], reverse=True)
    if not candidates:
        return [], []
    metric = found["metric"].replace("_", " ")
    headers = (
        "candidate",
        f"{metric} per row",
        "standard error",
        "difference to the best",
        "its standard error",
        "kept",
        "settings",
    )
    rows: list[list[Cell]] = [
        [
            one["name"],
            float(one["score"]),
            float(one["standard_error"]),
            float(one["difference"]),
            float(one["difference_error"]),
            "yes" if one["kept"] else "no",
            settings_text(one["settings"]),
        ]
        for one in candidates
    ]
    return [Table(f"Candidates on {found['rows']:,} rows left out", headers, rows)], []


def settings_text(settings: Json) -> str:
    """Settings as `name value, …`."""
    return ", ".join(f"{name} {_value(value)}" for name, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else orjson.dumps(value).decode()
