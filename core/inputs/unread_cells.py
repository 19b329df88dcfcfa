"""Cells of a file that held something, and are missing values all the same."""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.columns.strings import is_string
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import ALWAYS, KNOWN, NO_NUMBERS
from core.datasets.understanding.parsing import expected
from core.datasets.understanding.texts import quoted, trimmed, without
from models.features.columns import InputColumn
from models.messages import counted

WORDS: Mapping[str, tuple[str, ...]] = {"number": NO_NUMBERS, "datetime": KNOWN}
"""The usual words for a missing value, which hold nothing, by the types whose cells can be lost."""


def unread_note(
    column: InputColumn, given: Column, read: np.ndarray, line: Callable[[int], str]
) -> str | None:
    """How many cells could not be read, with examples and what is right; None if all were.

    Args:
        given: as the file has it.
        read: numbers or times.
        line: where a row is in the file.
    """
    if column.type not in WORDS or not is_string(given.type):
        return None
    reading = column.reading_or_plain
    words = (*ALWAYS, *WORDS[column.type], *reading.missing)
    texts = without(trimmed(given.cast(pa.large_string())), words)
    lost = np.array(pc.is_valid(texts).to_numpy()) & np.isnan(read)
    if not lost.any():
        return None
    rows = np.flatnonzero(lost)
    shown = quoted(dict.fromkeys(texts.filter(pa.array(lost)).to_pylist()))
    return (
        f"{column.name!r}: {shown} in {counted(len(rows), 'row')}: read as missing, because it is "
        f"not {expected(reading)} (the first is in {line(int(rows[0]))})"
    )
