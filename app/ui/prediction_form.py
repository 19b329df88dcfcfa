"""Data for the scripts of a prediction form: the features of a version, and a typical row."""

from datetime import datetime, time
from typing import Any

from app.ui.format import format_time, is_year
from core.database.schema import Json
from models.evaluation.scores import COMPARED

TABLE_TASKS = ("regression", "classification")


def form_data(about: Json, card: Json | None, max_samples: int) -> Json:
    """The form as JSON.

    Args:
        about: the version, as in `VersionResponse`.
        card: None if the reader may not see it; the form then has no ranges and typical values.
    """
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


def steps_read(about: Json) -> int:
    """The rows that the network of a forecaster reads; 0 of another model."""
    forecast = about.get("forecast")
    if forecast is None:
        return 0
    season = forecast["season"]
    return int(forecast["context"] + (season[-1] if isinstance(season, list) else season))


def _variant(variant: Json) -> Json:
    """The size of a variant, and its scores by title."""
    scores = {s.title: s.read(variant["metrics"]) for s in COMPARED}
    known = {title: value for title, value in scores.items() if value is not None}
    return {key: variant[key] for key in ("prune", "num_weights", "bytes")} | {"scores": known}


def _feature(feature: Json, column: Json | None) -> Json:
    """A feature with its range or levels, and its typical value, in the training rows."""
    known = column or {}
    field = {key: feature[key] for key in ("name", "type")}
    field |= {key: known[key] for key in ("min", "max", "shape", "missing") if key in known}
    if "levels" in known:
        field["levels"] = [_level(feature["type"], level) for level, _ in known["levels"]]
    numbers = (field.get("min"), field.get("max")) if field["type"] == "number" else (None, None)
    return field | {
        "typical": _typical(field, known),
        "is_year": is_year(field["name"], *numbers),
    }


def _typical(field: Json, column: Json) -> Any:
    """The median, the most frequent level, or the middle of the times; None if unknown."""
    if field["type"] == "number":
        return _middle(column)
    if field["type"] == "datetime" and column.get("min") is not None:
        first, last = (datetime.fromisoformat(str(column[key])) for key in ("min", "max"))
        middle = (first + (last - first) / 2).replace(microsecond=0)
        if all(end.time() == time.min for end in (first, last)):  # days, without a time of the day
            return middle.date().isoformat()
        return format_time(middle.isoformat())
    return next(iter(field.get("levels", ())), None)


def _middle(column: Json) -> float | int | None:
    """The median; of versions without one the mean, rounded if the ends of the range are whole."""
    if (median := column.get("median")) is not None:
        value = float(f"{median:.6g}")
        return int(value) if value.is_integer() else value
    if (mean := column.get("mean")) is None:
        return None
    is_whole = all(float(column[end]).is_integer() for end in ("min", "max"))
    return round(mean) if is_whole else float(f"{mean:.4g}")


def _level(kind: str, level: str) -> str | bool:
    return level == "true" if kind == "boolean" else level


def can_fill_in(form: Json) -> bool:
    """Whether a form can have a field for each feature. Tensors have none."""
    return form["task"] in TABLE_TASKS and all(
        field["type"] != "tensor" for field in form["features"]
    )
