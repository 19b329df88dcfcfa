"""Numbers that stand for a missing value, such as −999.

A value is taken for one if it has the form that people give such values (nines, limits of integers,
powers of ten) and lies further from all other values than these lie apart; a negative one of two
and more digits also if nothing else is negative. −1 and −9 are near to honest values: they must be
the only negative value and more frequent, five times, than any of the three values next to them.
Without the form, a value must occur three times and lie ten times as far away.
"""

from collections.abc import Iterator

import numpy as np

from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import Finding, fix_column
from models.features.columns import level_text
from models.plural import counted

MIN_ROWS = 10
_MIN_REST = 5  # distinct other values
_FAR = 10.0
_REPEATED = 3
_PEAK = 5.0  # rows of −1 ÷ rows of a value next to it
_WIDE = 20.0  # of other values beside −1
_LIMITS = frozenset(
    [2**15 - 1, -(2**15), 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2.0**63, -(2.0**63)]
)
_WEAK = (-1.0, -2.0, -7.0, -8.0, -9.0)


def find_sentinels(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each number column with values that seem to stand for missing ones."""
    for one in columns:
        if one.profile.type != "number" or one.num_present < MIN_ROWS or not _may_have(one):
            continue
        found = sentinels_of(one.values)
        if found:
            yield _finding(one, found)


def sentinels_of(values: np.ndarray) -> dict[float, int]:
    """Values that seem to stand for missing ones, with their rows."""
    distinct, counts = np.unique(values.astype(np.float64), return_counts=True)
    found: dict[float, int] = {}
    for low in (True, False):
        # np.unique sorts: the group of such values is at one end, the nearest last
        order = np.arange(len(distinct)) if low else np.arange(len(distinct))[::-1]
        group = _group(distinct[order], counts[order])
        found |= {float(distinct[i]): int(counts[i]) for i in order[:group]}
        kept = np.sort(order[group:])
        distinct, counts = distinct[kept], counts[kept]
    return found


def _group(distinct: np.ndarray, counts: np.ndarray) -> int:
    """How many of the first values are sentinels; values go from one end to the other."""
    length = 0
    while length < len(distinct) and _may_be(distinct[length]):
        length += 1
    for size in range(length, 0, -1):
        if _is_far(distinct[:size], counts[:size], distinct[size:]):
            return size
    if _is_weak(distinct, counts) or _is_alone(distinct, counts):
        return 1
    return 0


def _is_far(codes: np.ndarray, counts: np.ndarray, rest: np.ndarray) -> bool:
    negative = len(rest) > 0 and codes[0] < 0 <= rest.min()
    if len(rest) < (3 if negative else _MIN_REST):
        return False
    if negative and codes.max() <= -99:
        return True
    gap, width = np.abs(codes[:, None] - [rest.min(), rest.max()]).min(), np.ptp(rest)
    least = 1 if abs(codes[0]) >= 999 else 2 if looks_like_code(codes[0]) else _REPEATED
    return bool(gap > width and counts.sum() >= least)


def _is_weak(distinct: np.ndarray, counts: np.ndarray) -> bool:
    """Whether the first value is −1 or such, the only negative one, and a peak beside the rest."""
    if distinct[0] not in _WEAK or len(distinct) < _MIN_REST or distinct[1] < 0:
        return False
    nearest = counts[1:4].max()
    wide = distinct[-1] >= _WIDE and len(distinct) > _WIDE
    return bool(wide and counts[0] >= max(_REPEATED, _PEAK * nearest))


def _is_alone(distinct: np.ndarray, counts: np.ndarray) -> bool:
    """Whether the first value, of any form but 0, is repeated and very far from the rest."""
    rest = distinct[1:]
    if len(rest) < 2 * _MIN_REST or distinct[0] == 0 or counts[0] < _REPEATED:
        return False
    return bool(abs(distinct[0] - rest[0]) > _FAR * np.ptp(rest))


def _may_be(value: float) -> bool:
    return value in _WEAK or looks_like_code(value)


def looks_like_code(value: float) -> bool:
    """Whether people write such a number for a missing value."""
    size = abs(value)
    if value in _LIMITS or size >= 1e20:
        return True
    if size < 88 or size % 1:
        return False
    digits = str(int(size))
    power = len(digits) > 6 and set(digits[1:]) == {"0"}
    return power or _is_survey_code(digits)


def _is_survey_code(digits: str) -> bool:
    """Whether the digits are nines, eights or sevens, or nines with a last digit from 6 to 8."""
    if len(set(digits)) == 1 and digits[0] in "789":
        return digits[0] == "9" or len(digits) > 1
    return set(digits[:-1]) == {"9"} and digits[-1] in "678"


def _may_have(one: CheckedColumn) -> bool:
    """A cheap look at the ends: whether one is such a value, or the middle is empty."""
    low, high = one.profile.min or 0.0, one.profile.max or 0.0
    if low == high:
        return False
    if _may_be(low) or _may_be(high):
        return True
    return _is_empty(one.head, low, high) and _is_empty(one.values, low, high)


def _is_empty(values: np.ndarray, low: float, high: float) -> bool:
    margin = (high - low) / _FAR
    return not np.any((values > low + margin) & (values < high - margin))


def _finding(one: CheckedColumn, found: dict[float, int]) -> Finding:
    texts = [_text(value) for value in found]
    rows = sum(found.values())
    rest = np.setdiff1d(one.values, list(found))
    ends = f"{rest.min():g} to {rest.max():g}"
    listed, verb = " and ".join(texts), "stand" if len(texts) > 1 else "stands"
    return Finding(
        code="sentinel",
        severity="warning",
        column=one.name,
        message=f"column {one.name!r} is {listed} in {counted(rows, 'row')} and from {ends} in "
        f"all others: {listed} probably {verb} for a missing value",
        rows=rows,
        examples=one.examples(next(iter(found))),
        fix=fix_column(one.name, missing=texts),
    )


def _text(value: float) -> str:
    """The number as files write it: −999 without a point, 1e36 with an exponent."""
    return level_text(value) if abs(value) < 1e16 else repr(value)
