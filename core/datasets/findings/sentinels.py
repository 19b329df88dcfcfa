"""Numbers and dates that stand for a missing value, such as −999 and 9999-12-31.

A value is taken for one if it has the form that people give such values (nines, limits of integers,
powers of ten) and lies further from all other values than these lie apart; a negative one of two
and more digits also if nothing else is negative. −1 and −9 are near to honest values: they must be
the only negative value and more frequent, five times, than any of the three values next to them.
Without the form, a value must occur three times and lie ten times as far away.

Dates have forms of their own: the ends of calendars and the beginnings from which programs count.
Such a day may also lie among the others if it is five times as frequent as any of them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column
from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import Finding, fix_column
from models.features.columns import level_text
from models.messages import counted

MIN_ROWS = 10
_MIN_REST = 5  # distinct other values
_FAR = 10.0
_REPEATED = 3
_PEAK = 5.0  # rows of −1 ÷ rows of a value next to it
_WIDE = 20.0  # of other values beside −1
_LIMITS = frozenset(
    [2**15 - 1, -(2**15), 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2.0**63, -(2.0**63)]
)
_YEAR = np.timedelta64(365, "D")
# Ends of calendars and of programs' ranges, and what people write who must give a date
_DAYS: Any = np.array(
    [
        *("0001-01-01", "1111-11-11", "1582-10-15", "1600-01-01", "1601-01-01", "1677-09-21"),
        *("1700-01-01", "1753-01-01", "1800-01-01", "1850-01-01", "1899-12-30", "1899-12-31"),
        *("1900-01-01", "1901-01-01", "1904-01-01", "1910-01-01", "1969-12-31", "1970-01-01"),
        *("1980-01-01", "2038-01-19", "2050-12-31", "2079-06-06", "2099-01-01", "2099-12-31"),
        *("2100-01-01", "2199-12-31", "2200-01-01", "2222-02-22", "2262-04-11", "2299-12-31"),
        *("2500-01-01", "2999-12-31", "3000-01-01", "3000-12-31", "4712-12-31", "5999-12-31"),
        *("7999-12-31", "8888-08-08", "8888-12-31", "9998-12-31", "9999-01-01", "9999-09-09"),
        *("9999-12-01", "9999-12-30", "9999-12-31"),
    ],
    "datetime64[D]",
)
_WEAK = (-1.0, -2.0, -7.0, -8.0, -9.0)


def find_sentinels(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each column with numbers or dates that seem to stand for missing ones."""
    for one in columns:
        if one.num_present < MIN_ROWS:
            continue
        if one.profile.type == "datetime":
            if days := sentinel_days(one.column.cast(pa.date32(), safe=False)):
                yield _finding_of_days(one, days)
        elif (
            one.profile.type == "number" and _may_have(one) and (found := sentinels_of(one.values))
        ):
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


def sentinel_days(days: Column) -> dict[np.datetime64, int]:
    """Days that seem to stand for missing ones, with their rows."""
    counted_days = pc.value_counts(days.drop_null())
    distinct = np.asarray(counted_days.field("values")).astype("datetime64[D]")
    counts = np.asarray(counted_days.field("counts"))
    order = np.argsort(distinct)
    distinct, counts = distinct[order], counts[order]
    found: dict[np.datetime64, int] = {}
    while (place := _sentinel_day(distinct, counts)) is not None:
        found[distinct[place]] = int(counts[place])
        distinct, counts = np.delete(distinct, place), np.delete(counts, place)
    return found


def _sentinel_day(distinct: np.ndarray, counts: np.ndarray) -> int | None:
    """The place of one such day; the furthest first."""
    known = np.isin(distinct, _DAYS)
    for place in (len(distinct) - 1, 0):
        rest = np.delete(distinct, place)
        if len(rest) < _MIN_REST:
            return None
        gap, width = np.abs(rest - distinct[place]).min(), max(np.ptp(rest), _YEAR)
        if gap > (width if known[place] else _FAR * width) and (
            known[place] or counts[place] >= _REPEATED
        ):
            return place
    for place in np.flatnonzero(known & (counts >= _REPEATED)).tolist():
        if counts[place] >= _PEAK * np.delete(counts, place).max():
            return int(place)
    return None


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
    rest = np.setdiff1d(one.values, list(found))
    ends = f"{rest.min():g} to {rest.max():g}"
    first = pc.equal(one.column, pa.scalar(next(iter(found)), pa.float64()))
    return _said(one, [_text(value) for value in found], ends, first, sum(found.values()))


def _said(one: CheckedColumn, texts: list[str], ends: str, first: Any, rows: int) -> Finding:
    """The finding.

    Args:
        ends: of the other values.
        first: where the first of the values is.
        rows: with one of the values.
    """
    listed, verb = " and ".join(texts), "stand" if len(texts) > 1 else "stands"
    return Finding(
        code="sentinel",
        severity="warning",
        column=one.name,
        message=f"column {one.name!r} is {listed} in {counted(rows, 'row')} and from {ends} in "
        f"all others: {listed} probably {verb} for a missing value",
        rows=rows,
        examples=one.examples_where(first),
        fix=fix_column(one.name, missing=texts),
    )


def _finding_of_days(one: CheckedColumn, found: dict[np.datetime64, int]) -> Finding:
    days = one.column.cast(pa.date32(), safe=False)
    ends = pc.min_max(days.filter(pc.invert(_is_in(days, list(found)))))
    first = _is_in(days, [next(iter(found))])
    return _said(
        one, list(map(str, found)), f"{ends['min']} to {ends['max']}", first, sum(found.values())
    )


def _is_in(days: Column, some: list[np.datetime64]) -> Any:
    return pc.is_in(days, pa.array(np.array(some, "datetime64[D]")))


def _text(value: float) -> str:
    """The number as files write it: −999 without a point, 1e36 with an exponent."""
    return level_text(value) if abs(value) < 1e16 else repr(value)
