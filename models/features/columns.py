"""Named columns of a table: their types, what is known of them, conversions between types."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.config import ModelConfig
from models.exceptions import InvalidData

Columns = Mapping[str, np.ndarray]
"""Named columns, rows on the first axis, in the callers' own units.

number: float64, NaN is missing · boolean: float64 of 0, 1, NaN · category: objects, str or None ·
datetime: datetime64[us], NaT is missing · tensor: numbers [rows, ...] · text: objects, str.
"""


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """What is known of a column without its rows; statistics leave missing values out."""

    name: str
    type: str
    missing: int = 0
    shape: tuple[int, ...] | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    levels: tuple[str, ...] | None = None
    num_levels: int | None = None


_CONVERSIONS = {("number", "category"), ("boolean", "category"), ("boolean", "number")}


def convertible(stored: str, wanted: str) -> bool:
    """Whether a column of one type can be read as another."""
    return stored == wanted or (stored, wanted) in _CONVERSIONS


def convert(values: np.ndarray, stored: str, wanted: str) -> np.ndarray:
    """Values of one column type as another; a number or boolean becomes its text as a level."""
    if wanted in (stored, "number"):
        return values
    missing = np.isnan(values).tolist()
    native = values.astype(bool).tolist() if stored == "boolean" else values.tolist()
    levels = [None if gone else level_text(v) for v, gone in zip(native, missing, strict=True)]
    return np.array(levels, dtype=object)


def level_text(value: str | float | bool) -> str:
    """A category's level as text: 3.0 → "3", 2.5 → "2.5", True → "true"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True, kw_only=True)
class InputColumn:
    """What a caller sends for a feature: its type in the data set, the shape of a tensor.

    `missing`: whether training rows lacked numbers, so that the model has learned what that means.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    missing: bool = False


def column_of(columns: Mapping[str, ColumnProfile], name: str, path: str) -> ColumnProfile:
    """
    Raises:
        InvalidData: at `path`, naming the columns that there are.
    """
    if name not in columns:
        known = ", ".join(list(columns)[:20])
        raise InvalidData(f"the data set has no column {name!r}; it has {known}", path)
    return columns[name]


def check_features(config: ModelConfig, columns: Mapping[str, ColumnProfile]) -> None:
    """
    Raises:
        InvalidData: at /features/i, for a feature that is not there, the target, given twice, or
            of a type that cannot be read as the one that is asked for.
    """
    names = [feature.name for feature in config.features or ()]
    for i, feature in enumerate(config.features or ()):
        path = f"/features/{i}"
        profile = column_of(columns, feature.name, path)
        if feature.name == config.target:
            raise InvalidData(f"{feature.name!r} is the target and cannot be a feature", path)
        if names.index(feature.name) != i:
            raise InvalidData(f"feature {feature.name!r} is given twice", path)
        if profile.type == "text":
            raise InvalidData(f"{feature.name!r} is text, which only a language model reads", path)
        if not convertible(profile.type, feature.type):
            raise InvalidData(
                f"column {feature.name!r} is of type {profile.type} "
                f"and cannot be read as {feature.type}",
                f"{path}/type",
            )
