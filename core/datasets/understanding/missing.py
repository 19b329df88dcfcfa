"""Texts that stand for a missing value."""

import re
from functools import lru_cache

import numpy as np
import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.understanding.kernels import pc

ALWAYS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
"""In every column, whatever its type."""

CLEAR = (*ALWAYS, "#N/A", "#NA", "#NV", "<NA>", r"\N", "n/a", "N/a", "Null", "NAN", "-", "?")
"""Also in columns of categories: nobody names a level so."""

KNOWN = (
    *CLEAR,
    *("--", "---", "–", "—", ".", "..", "...", "*", "/", "_"),
    *("na", "Na", "n.a.", "N.A.", "n.a", "N.A", "n. a.", "none", "None", "NONE", "nil", "Nil"),
    *("NIL", "unknown", "Unknown", "UNKNOWN", "missing", "Missing", "MISSING", "empty", "blank"),
    *("undefined", "unk", "UNK", "tbd", "TBD", "not available", "Not available"),
    *("not applicable", "Not applicable", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!"),
    *("#NULL!", "#WERT!", "#BEZUG!", "#ZAHL!", "#DIV/0", "(null)", "[null]", "NV", "n.v.", "N.V."),
    *("k.A.", "k. A.", "k.a.", "k. a.", "K.A.", "kA", "keine Angabe", "Keine Angabe", "unbekannt"),
    *("Unbekannt", "fehlt", "leer", "nd", "ND", "n.d.", "N.D.", "s/d", "S/D", "s.d.", "1.#QNAN"),
    *("-1.#IND", "1.#IND", "-nan", "-NaN", "+nan"),
)
"""In columns of numbers, dates and booleans: such a text is no value there."""

_INFINITE = tuple(
    sign + word
    for sign in ("", "+", "-")
    for word in ("inf", "Inf", "INF", "infinity", "Infinity", "INFINITY", "∞", "1.#INF")
)
NO_NUMBERS = (*KNOWN, *_INFINITE)
"""In columns of numbers: a network cannot use infinity."""


@lru_cache(maxsize=64)
def words(texts: tuple[str, ...]) -> "pa.Array[pa.LargeStringScalar]":
    """The texts as Arrow compares them with a column."""
    return pa.array(texts, pa.large_string())


def without_days(times: Column, days: tuple[np.datetime64, ...]) -> Column:
    """With null at each time of one of the days."""
    found = pc.is_in(times.cast(pa.date32(), safe=False), pa.array(np.array(days, "datetime64[D]")))
    return pc.if_else(found, pa.scalar(None, times.type), times)


def without_values(numbers: Column, texts: tuple[str, ...]) -> Column:
    """With null where a number is one that the texts write: `-999` also stands for -999.0."""
    plain = [text for text in texts if re.fullmatch(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", text)]
    values = pa.array([float(text) for text in plain], pa.float64())
    found = pc.is_in(numbers.cast(pa.float64(), safe=False), values)
    return pc.if_else(found, pa.scalar(None, numbers.type), numbers)
