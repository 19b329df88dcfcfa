"""How the columns of a model's training data were read, which its predictions follow."""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from models.features.columns import ColumnReading, InputColumn

EXACT = "exact"


def readings_of(
    readings: Sequence[ColumnReading], needed: Collection[str]
) -> tuple[ColumnReading, ...]:
    """The readings that a model keeps: of its columns, and of those left out by default.

    Args:
        needed: names of the features, the target and what else the training reads.
    """
    return tuple(one for one in readings if one.name in needed or _left_out(one))


def names_unread(readings: Sequence[ColumnReading], inputs: Collection[str]) -> frozenset[str]:
    """The columns that the training left out by default, such as identifiers and free text.

    Args:
        inputs: names of the columns that the model reads, its target included.
    """
    return frozenset(one.name for one in readings if _left_out(one) and one.name not in inputs)


def with_readings(
    inputs: Sequence[InputColumn],
    readings: Sequence[ColumnReading],
    levels: Mapping[str, Sequence[str]],
) -> tuple[InputColumn, ...]:
    """Input columns that know how texts are read.

    Args:
        levels: the levels in training of each category.
    """
    by_name = {one.name: one for one in readings}
    from_texts = _are_from_texts(readings)
    known = (
        replace(one, levels=frozenset(levels[one.name])) if one.name in levels else one
        for one in inputs
    )
    return tuple(
        _with_reading(one, by_name.get(one.name), levels, from_texts=from_texts) for one in known
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
    read = {"number": _number, "datetime": _day}.get(type_)
    found = map(read, missing) if read else ()
    return tuple(value for value in found if value is not None)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _day(text: str) -> np.datetime64 | None:
    """A day of ISO 8601, in whatever form the file writes its dates."""
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return np.datetime64(text, "D")
    except ValueError:
        return None


def fold(level: str) -> str:
    """A level without stray blanks, case, and the two ways of writing accents."""
    return " ".join(unicodedata.normalize("NFC", level).split()).casefold()


def spellings(levels: Sequence[str]) -> dict[str, str]:
    """The level of each folded text; texts that more than one level folds to are left out."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for level in levels:
        folded = fold(level)
        if found.setdefault(folded, level) != level:
            twice.add(folded)
    return {folded: level for folded, level in found.items() if folded not in twice}


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
    if not _takes_texts(reading) and not (from_texts and reading.type == "number"):
        return column
    if column.type != "category" or reading.format == EXACT:
        return replace(column, reading=reading)
    known = spellings(levels.get(column.name, ()))
    merged = {fold(level): meant for level, meant in reading.levels.items()}
    return replace(column, reading=reading, spellings=known | merged)


def _are_from_texts(readings: Sequence[ColumnReading]) -> bool:
    """Whether the training data were texts: some number or boolean was written in a format.

    Then its plain numbers were texts, too, and `n/a` among them was a missing value.
    """
    return any(one.type in ("number", "boolean") and one.format for one in readings)


def _takes_texts(reading: ColumnReading) -> bool:
    """Whether texts were understood; a plain column of typed data takes only its type."""
    return reading.type == "category" or bool(reading.format or reading.missing)


def _left_out(reading: ColumnReading) -> bool:
    return not reading.use or reading.type == "text"
