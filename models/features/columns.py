"""Columns of a table: their types, profiles and conversions, and how their texts are read."""

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.clock import Clock
from models.messages import no_such_column

Columns = Mapping[str, np.ndarray]
"""Arrays by column name, rows on the first axis, in the caller's units.

number: float64, NaN is missing · boolean: float64 of 0, 1, NaN · category: objects, str or None ·
datetime: datetime64[us], NaT is missing · tensor: numbers [rows, ...] · text: objects, str.
"""

Load = Callable[..., Columns]
"""Reads columns by their names, all rows or a slice of them: `load(names)`, `load(names, rows)`."""


def select_rows(columns: Columns, index: np.ndarray | slice) -> Columns:
    """The columns of some rows."""
    return {name: values[index] for name, values in columns.items()}


def join_rows(parts: Sequence[Columns]) -> Columns:
    """The columns of parts of a table, one after the other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


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


EXACT = "exact"


def readings_of(
    readings: Sequence[ColumnReading], needed: Collection[str]
) -> tuple[ColumnReading, ...]:
    """The readings that a model keeps: of its columns, and of those left out by default.

    Args:
        needed: names of the features, the target and what else the training reads.
    """
    return tuple(reading for reading in readings if reading.name in needed or _left_out(reading))


def names_unread(readings: Sequence[ColumnReading], inputs: Collection[str]) -> frozenset[str]:
    """The columns that the training left out by default, such as identifiers and free text.

    Args:
        inputs: names of the columns that the model reads, its target included.
    """
    return frozenset(
        reading.name for reading in readings if _left_out(reading) and reading.name not in inputs
    )


def with_readings(
    inputs: Sequence[InputColumn],
    readings: Sequence[ColumnReading],
    levels: Mapping[str, Sequence[str]],
) -> tuple[InputColumn, ...]:
    """Input columns that know how texts are read.

    Args:
        levels: the levels in training of each category.
    """
    by_name = {reading.name: reading for reading in readings}
    # If some number or boolean was written in a format, all of the training data were texts. Then
    # the plain numbers were texts, too, and `n/a` among them was a missing value.
    from_texts = any(
        reading.type in ("number", "boolean") and reading.format for reading in readings
    )
    known = (
        replace(column, levels=frozenset(levels[column.name])) if column.name in levels else column
        for column in inputs
    )
    return tuple(
        _with_reading(column, by_name.get(column.name), levels, from_texts=from_texts)
        for column in known
    )


def without_sentinels(values: np.ndarray, reading: ColumnReading | None) -> np.ndarray:
    """Numbers or times, without those that stand for a missing value: -999, 9999-12-31."""
    if reading is None or not sentinels_of(reading):
        return values
    return blanked(values, are_sentinels(values, reading))


def are_sentinels(values: np.ndarray, reading: ColumnReading) -> np.ndarray:
    """Which numbers or times stand for a missing value; a day does at each of its times."""
    if reading.type == "datetime":
        values = values.astype("datetime64[D]")
    return np.isin(values, sentinels_of(reading))


def blanked(values: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Numbers or times, missing at some places."""
    missing = np.datetime64("NaT") if values.dtype.kind == "M" else np.nan
    return np.where(where, missing, values)


def sentinels_of(reading: ColumnReading) -> tuple[Any, ...]:
    """The numbers, or the days, among the texts that stand for a missing value."""
    return _sentinels(reading.type, tuple(reading.missing))


@lru_cache(maxsize=1024)  # each request asks for those of each of its columns
def _sentinels(type_: str, missing: tuple[str, ...]) -> tuple[Any, ...]:

    def number(text: str) -> float | None:
        try:
            return float(text)
        except ValueError:
            return None

    def day(text: str) -> np.datetime64 | None:
        """A day of ISO 8601, in whatever form the file writes its dates."""
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return None
        try:
            return np.datetime64(text, "D")
        except ValueError:
            return None

    read = {"number": number, "datetime": day}.get(type_)
    sentinels = map(read, missing) if read else ()
    return tuple(value for value in sentinels if value is not None)


def fold(level: str) -> str:
    """A level without stray blanks, case, and the two ways of writing accents."""
    return " ".join(unicodedata.normalize("NFC", level).split()).casefold()


def spellings(levels: Sequence[str]) -> dict[str, str]:
    """The level of each folded text; texts that more than one level folds to are left out."""
    spelled: dict[str, str] = {}
    twice: set[str] = set()
    for level in levels:
        folded = fold(level)
        if spelled.setdefault(folded, level) != level:
            twice.add(folded)
    return {folded: level for folded, level in spelled.items() if folded not in twice}


def is_known(level: str, column: InputColumn) -> bool:
    """Whether it is a level of the training rows, in any of the spellings that count as one."""
    if column.spellings is None:
        return level in column.levels or level in merged_levels(column)
    return level in column.levels or fold(level) in column.spellings


def level_as_trained(level: Any, column: InputColumn) -> Any:
    """A level as the training data have it: merged and spelled as there.

    Unknown ones, and what is no text, stay.
    """
    if not isinstance(level, str):
        return level
    if column.spellings is None:
        return merged_levels(column).get(level, level)
    return column.spellings.get(fold(level), level)


def merged_levels(column: InputColumn) -> Mapping[str, str]:
    """The levels that the training data read as another one."""
    return {} if column.reading is None else column.reading.levels


def _with_reading(
    column: InputColumn,
    reading: ColumnReading | None,
    levels: Mapping[str, Sequence[str]],
    *,
    from_texts: bool,
) -> InputColumn:
    if reading is None or reading.type != column.type:
        return column
    # A plain column of typed data takes only its type.
    takes_texts = reading.type == "category" or reading.format or reading.missing
    if not takes_texts and not (from_texts and reading.type == "number"):
        return column
    if column.type != "category" or reading.format == EXACT:
        return replace(column, reading=reading)
    known = spellings(levels.get(column.name, ()))
    merged = {fold(level): meant for level, meant in reading.levels.items()}
    return replace(column, reading=reading, spellings=known | merged)


def _left_out(reading: ColumnReading) -> bool:
    return not reading.use or reading.type == "text"
