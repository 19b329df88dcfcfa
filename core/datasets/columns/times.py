"""Times in the canonical form: microseconds in UTC."""

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns.place import Column, Place
from core.datasets.columns.strings import is_string

UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")
LOCAL_MICROSECONDS = pa.timestamp("us")

_DATE = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_ZONE = r"(Z|[+-]\d{2}(:?\d{2})?)"
_ENDS = r"\d:\d{2}(:\d{2}([.,]\d+)?)?\s?(Z|z|UTC|GMT|[+-]\d{2}(:?\d{2})?)\s*$"  # an offset
_FORMS = (  # pattern that every value matches, text to append, type of the completed text
    (r"^\d{4}-\d{2}$", "-01", LOCAL_MICROSECONDS),
    (rf"^{_DATE}([T ]{_TIME})?$", "", LOCAL_MICROSECONDS),
    (rf"^{_DATE}[T ]{_TIME}{_ZONE}$", "", UTC_MICROSECONDS),
)

EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
MAX_SECONDS = 2**38  # from 1970: beyond year 9999, but still inside 64-bit microseconds
OUT_OF_RANGE = "holds a time outside the years 1 to 9999, which RFC 3339 cannot write"


def is_time(type_: pa.DataType) -> bool:
    """Whether the type is a date, a timestamp or a time of day."""
    return pa.types.is_date(type_) or pa.types.is_timestamp(type_) or pa.types.is_time(type_)


def has_offset(column: Column, format_: str | None = None) -> bool:
    """Whether times are instants: they have a zone or an offset, or count from an instant.

    Args:
        format_: in which texts were read.
    """
    if isinstance(column.type, pa.TimestampType):
        return column.type.tz is not None
    if (format_ or "").startswith("unix"):
        return True
    texts = is_string(column.type)
    return texts and bool(pc.any(pc.match_substring_regex(column, _ENDS)).as_py())


def to_utc(column: Column, place: Place) -> Column:
    """Dates and timestamps in UTC, cut to microseconds; times of day as strings."""
    type_ = column.type
    if pa.types.is_time(type_):
        return column.cast(pa.large_string())
    has_zone = isinstance(type_, pa.TimestampType) and type_.tz is not None
    _check_seconds(column, place)
    try:
        if has_zone:
            instants = column.cast(UTC_MICROSECONDS, safe=False)
        else:
            instants = column.cast(LOCAL_MICROSECONDS, safe=False).cast(UTC_MICROSECONDS)
    except pa.ArrowInvalid as error:
        raise place.invalid(OUT_OF_RANGE) from error
    return _checked(instants, place)


def parse(column: Column, place: Place) -> Column:
    """UTC times if all strings are months, dates or times of ISO 8601; else the column itself."""
    if column.null_count == len(column):
        return column
    for pattern, completion, type_ in _FORMS:
        if pc.all(pc.match_substring_regex(column, pattern)).as_py():
            text = pc.binary_join_element_wise(
                column, pa.scalar(completion, column.type), pa.scalar("", column.type)
            )
            try:
                return _checked(text.cast(type_).cast(UTC_MICROSECONDS), place)
            except pa.ArrowInvalid:  # such as month 13: not dates after all
                return column
    return column


def _check_seconds(column: Column, place: Place) -> None:
    """Raise `Invalid` for times that overflow as microseconds; Arrow's cast does not check."""
    zone = column.type.tz if isinstance(column.type, pa.TimestampType) else None
    seconds = column.cast(pa.timestamp("s", tz=zone), safe=False).cast(pa.int64())
    most = pa.scalar(MAX_SECONDS)
    wrong = pc.or_(pc.less(seconds, pc.negate(most)), pc.greater(seconds, most))
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise place.invalid(OUT_OF_RANGE, row)


def _checked(instants: Column, place: Place) -> Column:
    # made here: with the first scalar pyarrow imports pandas, which no start should wait for
    earliest, latest = (pa.scalar(time, UTC_MICROSECONDS) for time in (EARLIEST, LATEST))
    wrong = pc.or_(pc.less(instants, earliest), pc.greater(instants, latest))
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise place.invalid(OUT_OF_RANGE, row)
    return instants
