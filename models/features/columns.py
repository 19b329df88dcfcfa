"""Columns of a table: their types, profiles and conversions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.clock import Clock
from models.nearest import no_such_column

Columns = Mapping[str, np.ndarray]
"""Arrays by column name, rows on the first axis, in the caller's units.

number: float64, NaN is missing · boolean: float64 of 0, 1, NaN · category: objects, str or None ·
datetime: datetime64[us], NaT is missing · tensor: numbers [rows, ...] · text: objects, str.
"""


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """Type, shape and statistics of a column. Statistics ignore missing values."""

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
    use: bool = True  # as a feature, unless a training names its features


@dataclass(frozen=True, kw_only=True)
class ColumnReading:
    """How the texts of a column are read; predictions read theirs the same way.

    Args:
        type: number, category, boolean, datetime, text or tensor.
        format: how the file writes the values: for a number the way in which 1234.56 stands there
            (`1.234,56 €`), for a datetime its order in the signs of strptime (`%d.%m.%Y`), for a
            boolean the words of true and false (`yes/no`), for a category `exact` if blanks and
            case count. None is the plain form.
        missing: texts that stand for a missing value.
        use: whether the column is a feature unless a training names its features.
        levels: levels of a category that are read as another one, such as misspelt ones.
        offset: whether times have an offset from UTC, so that a time zone does not move them.
    """

    name: str
    type: str
    format: str | None = None
    missing: tuple[str, ...] = ()
    use: bool = True
    levels: Mapping[str, str] = field(default_factory=dict, hash=False)
    offset: bool = False

    def to_json(self) -> dict[str, Any]:
        """The reading as it is stored. Without merged levels and offsets, earlier releases can
        read it.
        """
        new = ("levels", "offset")
        return {key: value for key, value in vars(self).items() if key not in new or value}


_CONVERSIONS = {
    ("number", "category"),
    ("boolean", "category"),
    ("boolean", "number"),
    ("category", "text"),
}


def convertible(stored: str, wanted: str) -> bool:
    """Whether a column of one type can be read as another."""
    return stored == wanted or (stored, wanted) in _CONVERSIONS


def convert(values: np.ndarray, stored: str, wanted: str) -> np.ndarray:
    """Convert values between column types; a number or boolean becomes a level's text."""
    if wanted in (stored, "number") or stored == "category":
        return values  # levels are texts, too
    missing = np.isnan(values).tolist()
    native = values.astype(bool).tolist() if stored == "boolean" else values.tolist()
    levels = [None if m else level_text(v) for v, m in zip(native, missing, strict=True)]
    return np.array(levels, dtype=object)


def level_text(value: str | float | bool) -> str:
    """Return a category's level as text: 3.0 → "3", 2.5 → "2.5", True → "true"."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True, kw_only=True)
class InputColumn:
    """A column that a prediction request must contain.

    Args:
        type: the type in the data set.
        missing: whether the training rows had missing numbers, so that the model has learned from
            them.
        continues: whether it is the text that a language model continues, and the only input.
        reading: how the training data were read; None if they were values without texts.
        spellings: the level of each text without stray blanks and case; None if these count.
        levels: those of the training rows, of a category.
        zone: the time zone of times without an offset; None for UTC.
        takes_local: whether the model takes local times of the zone; else it takes UTC.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None = None
    missing: bool = False
    continues: bool = False
    reading: ColumnReading | None = None
    spellings: Mapping[str, str] | None = field(default=None, compare=False, repr=False)
    levels: Collection[str] = field(default=(), compare=False, repr=False)
    zone: str | None = None
    takes_local: bool = False

    def on_its_clock(self, times: np.ndarray, *, has_offset: bool) -> np.ndarray:
        """The times as the model takes them: in UTC, or as its clock shows them.

        Args:
            has_offset: whether they are in UTC, as they had an offset; else local.
        """
        if self.zone is None or has_offset != self.takes_local:
            return times
        clock = Clock.of(self.zone)
        return clock.local(times) if self.takes_local else clock.instants(times)[0]

    @property
    def reading_or_plain(self) -> ColumnReading:
        """How texts are read: as the training data were, or as plain values are written."""
        return self.reading or ColumnReading(name=self.name, type=self.type)


def column_of(columns: Mapping[str, ColumnProfile], name: str, path: str) -> ColumnProfile:
    """Return the profile of the named column.

    Raises:
        InvalidData: at `path`, if there is no such column; it lists the columns that exist.
    """
    if name not in columns:
        raise InvalidData(no_such_column(name, columns), path)
    return columns[name]


def check_features(config: ModelConfig, columns: Mapping[str, ColumnProfile]) -> None:
    """Check that the configured features are columns that can be read as their types.

    Raises:
        InvalidData: at /features/i, if the feature is not a column, is the target, is given twice,
            or cannot be read as the configured type.
    """
    names = [feature.name for feature in config.features or ()]
    for i, feature in enumerate(config.features or ()):
        path = f"/features/{i}"
        profile = column_of(columns, feature.name, path)
        if feature.name == config.target:
            raise InvalidData(f"{feature.name!r} is the target and cannot be a feature", path)
        if names.index(feature.name) != i:
            raise InvalidData(f"feature {feature.name!r} is given twice", path)
        if not convertible(profile.type, feature.type):
            raise InvalidData(
                f"column {feature.name!r} is of type {profile.type} "
                f"and cannot be read as {feature.type}",
                f"{path}/type",
            )
