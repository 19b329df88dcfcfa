"""The features of a training form: which columns are used, and as which types."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.ui.findings import reasons
from core.datasets.dataset import Dataset
from models.config import ModelConfig
from models.features.columns import convertible

TYPES = ("number", "category", "boolean", "datetime", "tensor", "text")


@dataclass(frozen=True)
class Feature:
    """A column that may be a feature.

    Args:
        type: the type that it is read as.
        stored: its type in the data set.
        types: all types that it can be read as.
        reason: why it is not used by default; "" if it is.
    """

    name: str
    type: str
    stored: str
    is_chosen: bool
    types: Sequence[str]
    reason: str = ""


def feature_list(dataset: Dataset, config: ModelConfig, value: object) -> list[Feature]:
    """All columns that may be features; empty if the recipe has not chosen features yet.

    A forecast has no features unless the request names them.

    Args:
        value: the features of the request or the recipe; names, or objects with name and type.
    """
    if value is None and config.task != "forecasting":
        return []
    chosen = _types(value, dataset)
    why = reasons(dataset)
    read = {config.target}
    if config.task == "forecasting" and config.forecast:  # time and series are read in any case
        read |= {str(config.forecast.time_column), str(config.forecast.key)}
    columns = [c for c in dataset.columns if c.name not in read]
    return [
        Feature(
            name=c.name,
            type=chosen.get(c.name, c.type),
            stored=c.type,
            is_chosen=c.name in chosen,
            types=[t for t in TYPES if convertible(c.type, t)],
            reason="" if c.use else why.get(c.name, ""),
        )
        for c in columns
    ]


def feature_names(value: object, dataset: Dataset) -> list[object]:
    """The features as in a request: a name, or an object if the type differs from the column's."""
    stored = {c.name: c.type for c in dataset.columns}
    return [
        name if type_ == stored.get(name) else {"name": name, "type": type_}
        for name, type_ in _types(value, dataset).items()
    ]


def _types(value: object, dataset: Dataset) -> dict[str, str]:
    """Types by name, from a list of names and objects."""
    stored = {c.name: c.type for c in dataset.columns}
    found = [f if isinstance(f, dict) else {"name": f} for f in value or []]  # type: ignore[attr-defined]
    return {
        str(f.get("name")): str(f.get("type", stored.get(str(f.get("name")), "number")))
        for f in found
    }
