"""Sections about what a version was compared with: simple methods, and candidates of its recipe."""

from collections.abc import Sequence

import orjson

from app.ui.card import classics
from app.ui.charts import Cell, Chart, Content, Table, dot_chart, variant_name
from app.ui.format import with_error
from app.ui.scores import error_of
from core.database.schema import Json
from models.evaluation.scores import SCORES, Score

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
        + [_scored(score, v["metrics"]) for score in known]
        for v in variants
    ]
    rows += [
        [KINDS[one["kind"]], one["rows"], one["seconds"], _advantage(one)]
        + [_scored(score, one["metrics"]) for score in known]
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
    compared = [one for one in found if one.get("advantage") is not None]
    return tables, [_chart(card["task"], compared)] if compared else []


def _scored(score: Score, metrics: Json) -> Cell:
    return with_error(score.read(metrics), error_of(score, metrics))


def _advantage(baseline: Json) -> Cell:
    return with_error(baseline.get("advantage"), baseline.get("advantage_error"))


def _chart(task: str, compared: Sequence[Json]) -> Chart:
    """By how much this model is better than each method, with the error of the difference."""
    score = "CRPS" if task == "regression" else "log likelihood, nats"
    return dot_chart(
        "baselines-advantage",
        "Advantage over simple methods",
        "Mean difference on the same held-out rows ± standard error. Right of the line this model "
        "is better. A bar across the line decides nothing.",
        f"{score}, better per row by",
        [(KINDS[one["kind"]], one["advantage"]) for one in compared],
        errors=[one.get("advantage_error") for one in compared],
        level=0.0,
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
