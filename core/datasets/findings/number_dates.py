"""Numbers that count time: seconds and their parts since 1970, days of Excel, 20240131, 202401.

Ordered numbers look like any others. So all must lie in a few years of ours, and the wider range is
for columns that are named for a time.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import Finding, fix_column
from core.datasets.findings.names import names_date, names_time
from core.datasets.understanding.dates.columns import COMPACT, compact_dates
from core.datasets.understanding.dates.formats import DateFormat, epoch_of
from core.datasets.understanding.forced import as_texts

MIN_DISTINCT = 10


def find_number_dates(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each column of numbers that are probably dates, with the format to read so."""
    for one in columns:
        if one.profile.type == "number" and (format_ := _format_of(one)):
            first = as_texts(one.column.drop_null().slice(0, 1))
            shown, date = first[0].as_py(), DateFormat(format_).read(first)[0].as_py()
            yield Finding(
                code="dates_as_numbers",
                severity="warning",
                column=one.name,
                message=f"column {one.name!r} is read as numbers, and all could be dates: {shown} "
                f"is {date:%Y-%m-%d %H:%M} in the format {format_}. As dates, they show seasons",
                rows=one.num_present,
                examples=one.examples(),
                fix=fix_column(one.name, type="datetime", format=format_),
            )


def _format_of(one: CheckedColumn) -> str | None:
    low, high = one.profile.min, one.profile.max
    if low is None or high is None or one.num_present < MIN_DISTINCT:
        return None
    found = epoch_of(low, high, is_date=names_date(one.name), is_time=names_time(one.name))
    if found is None and any(first <= low and high <= last for _, first, last in COMPACT):
        return _compact(one)
    if found == "unix_ns" and not names_time(one.name) and _has_nanoseconds(one):
        return None  # identifiers of networks have as many digits, and count time too
    return found if found and one.num_distinct >= MIN_DISTINCT else None


def _has_nanoseconds(one: CheckedColumn) -> bool:
    return one.head.dtype.kind == "i" and bool(np.any(one.head % 1000))


def _compact(one: CheckedColumn) -> str | None:
    texts = as_texts(one.column)
    try:
        found = compact_dates(texts, texts.cast(pa.int64()))
    except pa.ArrowInvalid:  # fractions
        return None
    return found[0] if found else None
