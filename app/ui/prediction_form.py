"""What a form must know to ask a version: its features, and what a usual row looks like."""

from datetime import datetime
from typing import Any

from core.database.schema import Json
from models.evaluation.scores import COMPARED

OF_TABLES = ("regression", "classification")


def form_data(about: Json, card: Json | None, max_samples: int) -> Json:
    """For the scripts of a page. Without a card, ranges and typical values are not known."""
    columns = {c["name"]: c for c in (card["rows"]["columns"] if card else ())}
    return {
        "model": about["model"],
        "version": about["version"],
        "task": about["task"],
        "target": about["target"],
        "classes": about.get("classes"),
        "features": [
            _feature(feature, columns.get(feature["name"])) for feature in about["features"]
        ],
        "variants": [_variant(variant) for variant in about["variants"]],
        "forecast": about.get("forecast"),
        "max_samples": max_samples,
    }


def _variant(variant: Json) -> Json:
    """What a variant costs, and its scores by their titles."""
    scores = {s.title: s.read(variant["metrics"]) for s in COMPARED}
    known = {title: value for title, value in scores.items() if value is not None}
    return {key: variant[key] for key in ("prune", "num_weights", "bytes")} | {"scores": known}


def _feature(feature: Json, column: Json | None) -> Json:
    """A feature with the range, or levels, and the typical value of the rows learned from."""
    known = column or {}
    field = {key: feature[key] for key in ("name", "type")}
    field |= {key: known[key] for key in ("min", "max", "shape", "missing") if key in known}
    if "levels" in known:
        field["levels"] = [_level(feature["type"], level) for level, _ in known["levels"]]
    return field | {"typical": _typical(field, known)}


def _typical(field: Json, column: Json) -> Any:
    """Mean, most frequent level, or the middle of the time; None where nothing is known."""
    if field["type"] == "number":
        return None if column.get("mean") is None else float(f"{column['mean']:.4g}")
    if field["type"] == "datetime" and column.get("min") is not None:
        first, last = (datetime.fromisoformat(str(column[key])) for key in ("min", "max"))
        return (first + (last - first) / 2).replace(microsecond=0).isoformat()
    return next(iter(field.get("levels", ())), None)


def _level(kind: str, level: str) -> str | bool:
    return level == "true" if kind == "boolean" else level


def can_fill_in(question: Json) -> bool:
    """Whether a form can ask for a row: tensors are for programs."""
    return question["task"] in OF_TABLES and all(
        field["type"] != "tensor" for field in question["features"]
    )
