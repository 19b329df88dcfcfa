"""How the columns of a model's training data were read, which its predictions follow."""

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

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
    if not readings:
        return tuple(inputs)
    by_name = {one.name: one for one in readings}
    return tuple(_with_reading(one, by_name.get(one.name), levels) for one in inputs)


def without_sentinels(numbers: np.ndarray, reading: ColumnReading | None) -> np.ndarray:
    """Numbers with NaN for those that stand for a missing value, such as -999."""
    sentinels = () if reading is None else numeric_sentinels(tuple(reading.missing))
    return np.where(np.isin(numbers, sentinels), np.nan, numbers) if sentinels else numbers


@lru_cache(maxsize=1024)  # each request asks for those of each of its columns
def numeric_sentinels(missing: tuple[str, ...]) -> tuple[float, ...]:
    """The numbers among the texts that stand for a missing value."""
    return tuple(value for value in map(_number, missing) if value is not None)


def _number(text: str) -> float | None:
    try:
        return float(text)
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


def respelled(levels: np.ndarray, known: Mapping[str, str]) -> np.ndarray:
    """Levels as the training data spell them; unknown ones and missing values stay.

    Args:
        known: see `spellings`.
    """
    found = {level: _respelled(level, known) for level in set(levels.tolist())}
    made = np.empty(len(levels), dtype=object)
    made[:] = [found[level] for level in levels.tolist()]
    return made


def _respelled(level: str | None, known: Mapping[str, str]) -> str | None:
    return level if level is None else known.get(fold(level), level)


def _with_reading(
    column: InputColumn, reading: ColumnReading | None, levels: Mapping[str, Sequence[str]]
) -> InputColumn:
    if reading is None or reading.type != column.type or not _takes_texts(reading):
        return column
    if column.type != "category" or reading.format == EXACT:
        return replace(column, reading=reading)
    return replace(column, reading=reading, spellings=spellings(levels.get(column.name, ())))


def _takes_texts(reading: ColumnReading) -> bool:
    """Whether texts were understood; a plain column takes only values of its type."""
    return reading.type == "category" or bool(reading.format or reading.missing)


def _left_out(reading: ColumnReading) -> bool:
    return not reading.use or reading.type == "text"
