"""How each column of a data set was read, and as what it can be read instead."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.ui.findings import EXACT, reasons
from app.ui.reading import written
from core.datasets.dataset import Dataset
from models.features.columns import ColumnProfile, ColumnReading

MOST_COLUMNS = 200  # on the page: each takes a kilobyte
TYPES = ("number", "category", "boolean", "datetime", "text")
UNUSED = "unused"


@dataclass(frozen=True)
class ColumnRow:
    """A column in the table of a data set's page.

    Args:
        choices: the types that can be chosen; empty if the type is fixed.
        chosen: the type, or `unused`.
        how: how its texts were read, a sentence each.
        reason: why it is not used; "" if it is.
    """

    profile: ColumnProfile
    choices: Sequence[str]
    chosen: str
    how: Sequence[str]
    reason: str


def column_rows(dataset: Dataset) -> list[ColumnRow]:
    """The first columns with how they were read."""
    readings = {reading.name: reading for reading in dataset.readings}
    why = reasons(dataset)
    return [
        _row(column, readings.get(column.name), why) for column in dataset.columns[:MOST_COLUMNS]
    ]


def _row(column: ColumnProfile, reading: ColumnReading | None, why: dict[str, str]) -> ColumnRow:
    return ColumnRow(
        profile=column,
        choices=TYPES if column.type in TYPES else (),
        chosen=column.type if column.use else UNUSED,
        how=list(_how(reading)) if reading else (),
        reason="" if column.use else why.get(column.name, "it is left out by default"),
    )


def _how(reading: ColumnReading) -> Iterator[str]:
    if reading.format == EXACT:
        yield "blanks and case count"
    elif reading.format:
        yield f"written as {written(reading.format)}"
    if reading.missing:
        texts = ", ".join(f"“{text}”" for text in reading.missing)
        yield f"{texts} {'is' if len(reading.missing) == 1 else 'are'} missing"
    for meant in dict.fromkeys(reading.levels.values()):
        others = ", ".join(f"“{level}”" for level, one in reading.levels.items() if one == meant)
        yield f"{others} read as “{meant}”"
