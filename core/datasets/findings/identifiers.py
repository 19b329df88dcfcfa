"""Columns that name rows: counters, keys, hashes, addresses. They say nothing about new rows.

A column is an identifier if nearly every row has a value of its own, but for rows that are copies
of earlier ones, and one of these holds:

* its values are codes: UUIDs, hashes, e-mail addresses, links, numbers behind a prefix, or words
  that no two rows share
* it holds whole numbers, and its name is that of an identifier (`customer_id`)
* it holds whole numbers of nine and more digits, all of one length, that are no time in seconds
* it is the first column and counts: whole numbers that fill half of their range without repeating.
  Measurements do not: of n numbers drawn from 2n, some pair is equal but for one time in e^(n/4).

Names of times, ranks and distances (`year`, `step`) and bare letters (`x`) are exempt from the last
two: there, counting is what the column means. Fractions are never identifiers, nor are dates.
"""

import json
import re
from collections.abc import Iterator, Sequence

import numpy as np

from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import Finding, fix_column
from core.datasets.findings.names import (
    names_code,
    names_identifier,
    names_nothing,
    names_order,
    names_postal_code,
)

MIN_ROWS = 10
_UNIQUE = 0.98  # distinct values ÷ values, above which nearly every row has its own
_COUNTED = 100  # rows from which a column without a name can be seen to count
_DENSE = 0.5  # values ÷ range
_LONG = 10**8
_WORDS = 2.5  # per text, on average: of names there are fewer
_EPOCHS = (8 * 10**8, 3 * 10**9)  # seconds: the years 1995 to 2065

_CODE = re.compile(
    r"""[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}   # UUID
    | (?=.*\d)(?=.*[a-fA-F])[0-9a-fA-F]{8,}                    # hexadecimal
    | (?=.*\d)(?=.*[A-Z])(?=.*[a-z])[A-Za-z0-9+/_-]{12,}={0,2} # base64
    | [^\s@]+@[^\s@]+\.[A-Za-z]{2,}                            # e-mail
    | (?:https?|ftp|s3|file)://\S+ | www\.\S+                  # link
    | [A-Za-z]{1,8}[-_/\#.: ]?\d{2,}(?:[-_/.]?[A-Za-z0-9]+)*     # prefix and number
    | \d{2,}[-_/]?[A-Za-z]{1,4}\d*                             # number and suffix
    | (?:/|[A-Za-z]:\\|\./)?(?:[\w.-]+[/\\])+[\w.-]+\.\w{1,5}  # path
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"[+-]?[\d.,' ]*\d(?:[eE][+-]?\d+)?\s*\D{0,3}")
_DIGITS = re.compile(r"\d{6,}")
_TIME = re.compile(r"(?=.*[-/:.])[\d\s:./TZ+-]{6,}")


def find_identifiers(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each column that names rows. It is left out unless its owner wants it."""
    for one in columns:
        if reason := _reason(one, first=one.place == 0 and len(columns) > 2):
            yield Finding(
                code="identifier",
                severity="warning",
                column=one.name,
                message=f"column {one.name!r} {reason}: it identifies rows and says nothing "
                "about new rows, so it is not used by default",
                rows=one.num_present,
                examples=one.examples(),
                fix=fix_column(one.name, use=True),
            )


def find_numeric_keys(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each number that is named like a key and that rows share: `store_id`."""
    for one in columns:
        if one.profile.type != "number" or not names_code(one.name) or one.is_binary:
            continue
        if names_postal_code(one.name) or one.is_constant:
            continue
        if not _is_whole(one.head) or _is_unique(one):
            continue
        yield Finding(
            code="numeric_code",
            severity="warning",
            column=one.name,
            message=f"column {one.name!r} is read as a number and named like a code: numbers "
            f"are ordered, and codes are not. It has {one.num_distinct} different values",
            rows=one.num_present,
            examples=one.examples(),
            fix=fix_column(one.name, type="category"),
        )


def find_repeated_codes(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each category whose codes name things, such as machines, of several rows each.

    Held-out rows of a machine that training has seen say nothing about another machine.
    """
    for one in columns:
        levels = one.profile.num_levels or 0
        if one.profile.type != "category" or levels < MIN_ROWS or one.num_present < 2 * levels:
            continue
        if names_order(one.name) or not (_are(_CODE, one.texts) or names_identifier(one.name)):
            continue
        split = json.dumps({"by": one.name}, ensure_ascii=False)
        yield Finding(
            code="repeated_code",
            severity="info",
            column=one.name,
            message=f"column {one.name!r} has {levels} codes, each in about "
            f"{one.num_present / levels:.0f} rows. If you will predict rows of other codes, leave "
            f"it out of the features and hold out whole codes: training.split={split}",
            rows=one.num_present,
            examples=one.examples(),
            fix=fix_column(one.name, use=False),
        )


def _reason(one: CheckedColumn, *, first: bool) -> str | None:
    if one.num_present < MIN_ROWS or one.is_constant:
        return None
    match one.profile.type:
        case "number":
            return _reason_of_numbers(one, first=first)
        case "category" | "text":
            return _reason_of_texts(one)
    return None


def _reason_of_numbers(one: CheckedColumn, *, first: bool) -> str | None:
    if not _is_whole(one.head) or not _is_unique(one) or not _is_whole(one.values):
        return None
    if names_identifier(one.name):
        return "has whole numbers, nearly all different, and is named like an identifier"
    if names_order(one.name) or names_nothing(one.name):
        return None
    if _is_long(one):
        return "has long whole numbers of equal length, nearly all different"
    return "counts the rows" if first and _is_dense(one) else None


def _reason_of_texts(one: CheckedColumn) -> str | None:
    if names_order(one.name):
        return None  # quarters and dates in an order that nobody reads
    texts = one.texts
    if len(set(texts)) + one.copies < _UNIQUE * len(texts) or not _is_unique(one):
        return None
    if _are_values(texts):
        known = _are(_DIGITS, texts) or names_identifier(one.name)
        return "has numbers written as texts, nearly all different" if known else None
    if _are(_CODE, texts):
        return "has codes, nearly all different"
    if one.profile.type == "text" or _are_phrases(one):
        return None
    return "has words, nearly all different"


def has_own_phrases(one: CheckedColumn) -> bool:
    """Whether a category has several words in nearly every row, which no other row has."""
    if one.profile.type != "category" or one.num_present < MIN_ROWS or names_order(one.name):
        return False
    texts = one.texts
    if len(set(texts)) + one.copies < _UNIQUE * len(texts) or not _is_unique(one):
        return False
    return not _are_values(texts) and not _are(_CODE, texts) and _are_phrases(one)


def _are_phrases(one: CheckedColumn) -> bool:
    words = sum(len(text.split()) for text in one.texts) / len(one.texts)
    return words >= _WORDS and not names_identifier(one.name)


def _are_values(texts: Sequence[str]) -> bool:
    """Whether the texts are numbers or times, which their file declares to be texts."""
    return _are(_NUMBER, texts) or _are(_TIME, texts)


def _are(pattern: re.Pattern[str], texts: Sequence[str]) -> bool:
    return sum(pattern.fullmatch(text.strip()) is not None for text in texts) >= 0.95 * len(texts)


def _is_unique(one: CheckedColumn) -> bool:
    """Whether nearly every row that is no copy has its own value."""
    if one.profile.type == "number":
        distinct = len(np.unique(one.head)) + one.copies  # a cheap look
        if distinct < _UNIQUE * len(one.head):
            return False
    return one.num_distinct >= _UNIQUE * (one.num_present - one.copies)


def _is_whole(values: np.ndarray) -> bool:
    return values.dtype.kind in "iu" or bool(np.all(np.mod(values, 1) == 0))


def _is_long(one: CheckedColumn) -> bool:
    """Whether the numbers have many digits; measured ones in a small unit end in zeros."""
    low, high = one.profile.min or 0.0, one.profile.max or 0.0
    if low < _LONG or len(str(int(low))) != len(str(int(high))):
        return False
    if high < 2**63 and low < _LONG * int(np.gcd.reduce(one.values.astype(np.int64))):
        return False
    seconds = [10**power for power in (0, 3, 6, 9)]  # … down to nanoseconds
    return not any(_EPOCHS[0] * s <= low and high <= _EPOCHS[1] * s for s in seconds)


def _is_dense(one: CheckedColumn) -> bool:
    low, high = one.profile.min or 0.0, one.profile.max or 0.0
    counts = one.num_present >= _COUNTED and low >= 0
    return counts and one.num_present >= _DENSE * (high - low + 1)
