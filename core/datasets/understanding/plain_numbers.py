"""Numbers as every program writes them: `-12`, `3.5`, `1e-3`. A few kernels for a whole column."""

import numpy as np
import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.understanding.kernels import pc

EXACT = 2**53  # whole numbers up to here are exact as float64
EXACT_DIGITS = 16
_SHORT = 10**6
TELEPHONE = r"^\+[0-9]{7,}$"
HEAD = 1000  # texts
_SIGNS = ("", "-", "+")
_NOT_PLAIN = [sign + "0" + c for sign in _SIGNS for c in "0123456789xX"]


def read(texts: Column) -> "Column | None":
    """int64 or float64, if every text is a plain number that keeps its digits; else None.

    Codes with leading zeros (`00123`), hexadecimal numbers (`0x1A`), columns of identifiers with
    more digits than a number keeps, and `inf` are not plain.
    """
    whole = cast(texts, pa.int64())
    numbers = cast(texts, pa.float64()) if whole is None else whole
    if numbers is None or _has_code(texts, numbers) or _has_other(numbers):
        return None
    return None if is_identifiers(texts, numbers) else numbers


def whole(texts: Column) -> "Column | None":
    """As `read`, if all are whole numbers; else None."""
    numbers = cast(texts, pa.int64())
    if numbers is None or _has_code(texts, numbers) or is_identifiers(texts, numbers):
        return None
    return numbers


def is_identifiers(texts: Column, numbers: Column) -> bool:
    """Whether all texts are of 16 digits or more and lie beyond what a number keeps exactly."""
    if len(texts) == texts.null_count:
        return False
    ends = pc.min_max(numbers)
    largest = max(abs(ends["min"].as_py()), abs(ends["max"].as_py()))
    if largest <= EXACT:
        return False
    digits = pc.match_substring_regex(texts, rf"^[+-]?\d{{{EXACT_DIGITS},}}$")
    return bool(pc.all(digits).as_py())


def cast(texts: Column, type_: pa.DataType) -> "Column | None":
    """The texts as a type of numbers; None if a text is none.

    Arrow spends a microsecond on each text that it refuses, so the first ones are tried alone.
    """
    try:
        if len(texts) > HEAD:
            texts.slice(0, HEAD).cast(type_)
        return texts.cast(type_)
    except pa.ArrowInvalid:
        return None


def _has_code(texts: Column, numbers: Column) -> bool:
    """Whether a text begins with a zero and a digit, is hexadecimal or a telephone number."""
    if pa.types.is_integer(numbers.type) and _are_shortest(texts, numbers):
        return False
    begins: Column = pc.utf8_slice_codeunits(texts, 0, 3)
    two = pc.utf8_slice_codeunits(begins, 0, 2)
    codes = pa.array(_NOT_PLAIN, texts.type)
    if pc.any(pc.is_in(two, codes)).as_py() or pc.any(pc.is_in(begins, codes)).as_py():
        return True
    if not pc.any(pc.starts_with(begins, "+")).as_py():
        return False
    return bool(pc.any(pc.match_substring_regex(texts, TELEPHONE)).as_py())


def _are_shortest(texts: Column, numbers: Column) -> bool:
    """Whether no text of a small whole number could be shorter, seen from their sum.

    Leading zeros, signs and `0x` make a text longer; only above a million could `0x` spare digits.
    """
    values = np.asarray(pc.fill_null(numbers, 0).to_numpy())
    if np.abs(values).max(initial=0) >= _SHORT or values.min(initial=0) <= -_SHORT:
        return False
    longer = sum(int(np.count_nonzero(np.abs(values) >= 10**power)) for power in range(1, 6))
    least = len(values) - numbers.null_count + longer + int(np.count_nonzero(values < 0))
    return bool(pc.sum(pc.binary_length(texts)).as_py() == least)


def _has_other(numbers: Column) -> bool:
    """Whether a text was `inf` or `nan`, or a number too large for float64."""
    if pa.types.is_integer(numbers.type):
        return False
    return not pc.all(pc.is_finite(numbers)).as_py() and numbers.null_count < len(numbers)
