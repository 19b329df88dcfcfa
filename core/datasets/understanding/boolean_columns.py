"""Columns of yes and no, with what is said about them."""

from typing import Any

import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.understanding.booleans import MOST_WORDS, Words, bits_of, find, spelling
from core.datasets.understanding.kernels import pc
from core.datasets.understanding.missing import CLEAR
from core.datasets.understanding.texts import Texts, lost, sample, without
from core.datasets.understanding.understood import Understood
from models.features.columns import ColumnReading


def read(texts: Texts, column: Column) -> Understood | None:
    """The column, if all its texts are words of yes and no, or of true and false; else None."""
    known = without(column, CLEAR)
    some = sample(known)
    if len(some) > MOST_WORDS or find(dict.fromkeys(some, 1)) is None:
        return None
    family = find(counts_of(known))
    return None if family is None else understood(texts, column, known, family)


def understood(texts: Texts, column: Column, known: Column, family: Words) -> Understood:
    """The booleans; null where a text is no word of the family."""
    bits, (true, false) = bits_of(family, known), spelling(family, counts_of(known))
    values = bits
    if family.stays:
        values = pc.if_else(bits, pa.scalar(true, known.type), pa.scalar(false, known.type))
    plain = (true.lower(), false.lower()) == ("true", "false")
    format_ = None if plain else f"{true}/{false}"
    words = lost(column, bits)
    message = "{values} in {rows}: neither " + f"{true} nor {false}, read as missing"
    return Understood(
        values,
        ColumnReading(name=texts.name, type="boolean", format=format_),
        (texts.finding("mostly_boolean", "info", message, words, type="category", missing=[]),)
        if pc.any(words).as_py()
        else (),
    )


def counts_of(column: Column) -> dict[str, int]:
    """How often each text occurs."""
    counted: Any = pc.value_counts(column.drop_null())
    return {one["values"]: one["counts"] for one in counted.to_pylist()}
