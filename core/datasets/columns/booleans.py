"""Booleans that a file writes as words: stored as strings, so that a target keeps its words."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns.place import Column

TRUE_FALSE = (  # words that become Arrow booleans
    ("true", "false"),
    ("t", "f"),
    ("wahr", "falsch"),
    ("vrai", "faux"),
    ("verdadero", "falso"),
    ("verdadeiro", "falso"),
    ("vero", "falso"),
    ("waar", "onwaar"),
)
YES_NO = (  # words that stay, by language: of true, of false
    (("yes", "y"), ("no", "n")),
    (("ja", "j"), ("nein", "n", "nej", "nee")),
    (("oui",), ("non",)),
    (("si", "sí", "sì", "sim"), ("no", "não", "nao")),  # S and N are also south and north
    (("tak",), ("nie",)),
    (("да",), ("нет",)),
    (("on",), ("off",)),
)
TRUE_WORDS = frozenset(word for yes, _ in YES_NO for word in yes)


def to_bits(column: Column) -> np.ndarray:
    """1.0 for words of true, 0.0 for other words, NaN for missing values.

    Args:
        column: strings; case does not count.
    """
    if len(column) == 0:
        return np.empty(0)
    words = pa.array(sorted(TRUE_WORDS), pa.large_string())
    lowered = pc.utf8_lower(column.cast(pa.large_string()))
    bits = pc.if_else(pc.is_valid(column), pc.is_in(lowered, words), pa.scalar(None, pa.bool_()))
    return np.array(bits.cast(pa.uint8()).cast(pa.float64()).to_numpy(), np.float64)
