"""How a file writes dates, and columns of texts read so.

A format is written in the signs of strptime, with `%q` for a quarter and `%h` for a half-year.
` or ` stands between the forms of a column that has several.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.columns import Column
from core.datasets.columns.times import UTC_MICROSECONDS
from core.datasets.understanding.dates.month_names import month_of
from core.datasets.understanding.dates.periods import ORDINAL, number_of
from core.datasets.understanding.kernels import pc

OR = " or "
_EXAMPLE = {  # 2023-12-31 23:59:30 in each sign
    "Y": "2023",
    "G": "2023",
    "y": "23",
    "m": "12",
    "d": "31",
    "b": "Dec",
    "B": "December",
    "q": "4",
    "h": "2",
    "V": "52",
    "u": "7",
    "a": "Sun",
    "A": "Sunday",
    "H": "23",
    "I": "11",
    "M": "59",
    "S": "30",
    "f": "0",
    "p": "PM",
    "z": "+00:00",
    "%": "%",
}
ISO = "%Y-%m-%dT%H:%M:%S"
EXAMPLES = (
    "%Y-%m-%d, %d.%m.%Y, %m/%d/%Y %H:%M, %d %b %Y, %Y%m%d, %YQ%q, %G-W%V, unix, unix_ms, excel"
)
EXPECTED_ISO = "a date such as 2024-01-31 or 2024-01-31T10:30:00"
_DAY = np.timedelta64(86_400_000_000, "us")
SINCE = {  # microseconds in one, and the moment from which numbers count
    "unix": (1_000_000, np.datetime64(0, "us")),
    "unix_ms": (1_000, np.datetime64(0, "us")),
    "unix_us": (1, np.datetime64(0, "us")),
    "unix_ns": (1e-3, np.datetime64(0, "us")),
    "excel": (86_400_000_000, np.datetime64("1899-12-30", "us")),
}
_LAST_OF_2023 = np.datetime64("2023-12-31", "us")
_FIELDS = {
    "Y": ("year", r"[0-9]{4}"),
    "y": ("short", r"[0-9]{2}"),
    "m": ("month", r"[0-9]{1,2}"),
    "d": ("day", r"[0-9]{1,2}"),
    "b": ("name", r"[\pL\pM]{3,10}\.?"),
    "B": ("name", r"[\pL\pM]{3,10}\.?"),
    "q": ("quarter", r"[1-4]|IV|I{1,3}"),
    "h": ("half_year", r"[12]|I{1,2}"),
    "V": ("week", r"[0-9]{1,2}"),
    "u": ("weekday", r"[1-7]"),
    "G": ("year", r"[0-9]{4}"),
    "H": ("hour", r"[0-9]{1,2}"),
    "I": ("hour", r"[0-9]{1,2}"),
    "M": ("minute", r"[0-9]{2}"),
    "S": ("second", r"[0-9]{2}"),
    "f": ("fraction", r"[0-9]{1,9}"),
    "p": ("half", r"[AaPp]\.?\s?[Mm]\.?"),
    "z": ("zone", r"Z|UTC|GMT|[+-][0-9]{2}(?::?[0-9]{2})?"),
}
_SECONDS = r"(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
_ISO_PATTERN = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2})(?:[T ](?P<hour>[0-9]{2}):"
    r"(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?"
    r"\s?(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?)?)?$"
)


@dataclass(frozen=True)
class DateFormat:
    """How a file writes dates and times. None is ISO 8601: 2024-01, 2024-01-31, with or without
    a time and a zone.
    """

    text: str | None = None

    @classmethod
    def parse(cls, text: str | None) -> "DateFormat":
        """The format, checked.

        Raises:
            ValueError: a sign is unknown, or there is no year.
        """
        unknown = [sign for sign in re.findall("%(.)", text or "") if sign not in _KNOWN]
        forms = [] if text in SINCE else cls(text).forms
        if unknown or not all(re.search("%[YyG]", form) for form in forms):
            raise ValueError(f"write the order of the date in the signs of strptime: {EXAMPLES}")
        return cls(text)

    @property
    def expected(self) -> str:
        """What a text must be, for messages."""
        return EXPECTED_ISO if self.text is None else f"a date such as {self.example}"

    @property
    def forms(self) -> list[str]:
        """The signs of each form; none for ISO 8601."""
        return [] if self.text is None else self.text.split(OR)

    @property
    def is_number(self) -> bool:
        """Whether a date is a number: 20240131, or seconds since 1970."""
        return self.text in SINCE or re.fullmatch("(?:%[YmdHMS])+", self.text or "") is not None

    @property
    def example(self) -> str:
        """The last day of 2023 in each form."""
        if self.text is None:
            return "2023-12-31"
        if self.text in SINCE:
            micros, start = SINCE[self.text]
            return str(round((_LAST_OF_2023 - start).astype(np.int64) / micros))
        return re.sub("%(.)", lambda sign: _EXAMPLE[sign[1]], self.text)

    def read(self, column: Column) -> Column:
        """Times in UTC; null where the text is no date of this format, nor ISO 8601 where that
        cannot be mistaken for it, or where its day does not exist.

        Args:
            column: large strings.
        """
        return self._read(column, iso=self.text is not None and not self.text.startswith("%Y"))

    def read_own(self, column: Column) -> Column:
        """As `read`, but null where the text is ISO 8601 and no form of the format."""
        return self._read(column, iso=False)

    def _read(self, column: Column, *, iso: bool) -> Column:
        if self.text in SINCE:
            return _since(column, *SINCE[self.text])
        encoded: Any = column.combine_chunks().dictionary_encode()
        found = self.instants(encoded.dictionary)
        if iso:  # workbooks hold texts among dates
            others = DateFormat().instants(encoded.dictionary)
            found = np.where(np.isnat(found), others, found)
        instants = pa.array(found).cast(UTC_MICROSECONDS)
        return pa.chunked_array([instants.take(encoded.indices)])

    def instants(self, texts: Any) -> np.ndarray:
        """datetime64[us] in UTC, NaT where a text is no date of this format alone."""
        if self.text is not None and OR in self.text:
            read = (DateFormat(form).instants(texts) for form in self.forms)
            return reduce(lambda one, other: np.where(np.isnat(one), other, one), read)
        found: Any = pc.extract_regex(texts, self._pattern)
        names = [found.type.field(i).name for i in range(found.type.num_fields)]
        fields = {name: pc.struct_field(found, [name]) for name in names}
        return _instants(fields, len(texts), weekly="%V" in (self.text or ""))

    @cached_property
    def _pattern(self) -> str:
        """A whole cell, with a named group for each part."""
        if self.text is None:
            return _ISO_PATTERN
        date, time = _split(self.text)
        return f"^{_pattern(date)}" + (f"(?:{_pattern(time)})?" if time else "") + "$"


_KNOWN = {*_FIELDS, "a", "A", "%"}


def _split(text: str) -> tuple[str, str]:
    """The date, and the time with the blank before it, which a cell may lack; no zone is lost."""
    found = re.search("[T ,:]*%[HI]", text)
    if found is None or re.search("%[YymdbBqhGVu]", text[found.start() :]) or "%z" in text:
        return text, ""
    return text[: found.start()], text[found.start() :]


def _pattern(text: str) -> str:
    """Seconds and their fraction may be absent; blanks too."""
    blank = r"(?:\s+(?:of|del?)\s+|\s*)" if re.search("%[bqhV]", text) else r"\s*"
    parts = []
    for seconds, sign, blanks, other in re.findall(r"(:%S(?:[.,]%f)?)|%(.)|(\s+)|(.)", text):
        if seconds:
            parts.append(_SECONDS)
        elif sign in ("a", "A"):
            parts.append(r"[\pL\pM]{2,12}\.?")
        elif sign:
            name, pattern = _FIELDS[sign]
            is_counted = sign in "qhV" or (sign == "d" and "%b" in text)
            ordinal = f"{ORDINAL}?" if is_counted else ""
            parts.append(rf"(?P<{name}>{pattern}){ordinal}")
        else:
            parts.append(blank if blanks else _literal(other))
    return "".join(parts)


def _literal(character: str) -> str:
    return re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", character)


def _instants(fields: Mapping[str, Any], count: int, *, weekly: bool) -> np.ndarray:
    """Moments in UTC as datetime64[us]; NaT where a field is missing or out of its range."""
    number = {name: _integers(field) for name, field in fields.items() if name not in _NOT_INTEGERS}
    year = number["year"] if "year" in number else _century(number["short"])
    if weekly:
        days, good = _days_of_weeks(year, number["week"], number.get("weekday"))
    else:
        days, good = _days(year, _month(fields, number, count), number.get("day"))
    time = np.zeros(count, np.int64)
    for name, unit, limit in (("hour", 3600, 24), ("minute", 60, 60), ("second", 1, 60)):
        values = np.maximum(number.get(name, np.zeros(count, np.int64)), 0)
        if name == "hour" and "half" in fields:
            values, fits = _half_days(values, fields["half"])
            good &= fits
        good &= values < limit
        time += values * unit
    micros = time * 1_000_000 + _fraction(fields, count) - _zone(fields, count)
    return np.where(good, days.astype("datetime64[us]") + micros.astype("timedelta64[us]"), _NAT)


_NOT_INTEGERS = {"name", "quarter", "half_year", "half", "zone", "fraction"}
_NAT = np.datetime64("NaT", "us")


def _integers(field: Any) -> np.ndarray:
    """Whole numbers; -1 where the field is absent."""
    present = pc.and_(pc.is_valid(field), pc.not_equal(field, ""))
    filled = pc.if_else(pc.fill_null(present, False), field, pa.scalar("-1", field.type))
    return np.asarray(filled.cast(pa.int64()))


def _century(short: np.ndarray) -> np.ndarray:
    """As POSIX: 69 to 99 are 1969 to 1999, 00 to 68 are 2000 to 2068."""
    return np.where(short < 0, -1, short + np.where(short >= 69, 1900, 2000))


def _month(fields: Mapping[str, Any], number: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    for field, month_in in _MONTHS.items():
        if field in fields:
            names = fields[field].dictionary_encode()
            months = [month_in(name) or -1 for name in names.dictionary.to_pylist()]
            places = np.asarray(pc.fill_null(names.indices, 0))
            missing = np.asarray(pc.is_null(names.indices))
            return np.where(missing, -1, np.array([*months, -1])[places])
    return number.get("month", np.ones(count, np.int64))


_MONTHS: Mapping[str, Callable[[str], int | None]] = {  # the first one of a period
    "name": month_of,
    "quarter": lambda text: number_of(text) * 3 - 2,
    "half_year": lambda text: number_of(text) * 6 - 5,
}


def _days(
    year: np.ndarray, month: np.ndarray, day: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    good = (year >= 1) & (month >= 1) & (month <= 12)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    given = np.ones_like(year) if day is None else np.where(day == -1, 1, day)
    days = months.astype("datetime64[D]") + (given - 1).astype("timedelta64[D]")
    return days, good & (given >= 1) & (given <= 31) & (days.astype("datetime64[M]") == months)


def _days_of_weeks(
    year: np.ndarray, week: np.ndarray, weekday: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Days of ISO weeks, by default Mondays: the fourth of January lies in the first week."""
    good = (year >= 1) & (week >= 1) & (week <= 53)
    years = np.where(good, year - 1970, 0).astype("datetime64[Y]")
    fourth = years.astype("datetime64[D]") + np.timedelta64(3, "D")
    monday = fourth - (fourth.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    after = (week - 1) * 7 + (0 if weekday is None else weekday - 1)
    return monday + after.astype("timedelta64[D]"), good


def _half_days(hour: np.ndarray, half: Any) -> tuple[np.ndarray, np.ndarray]:
    afternoon = np.asarray(pc.fill_null(pc.match_substring_regex(half, "^[Pp]"), False))
    return hour % 12 + np.where(afternoon, 12, 0), hour <= 12


def _fraction(fields: Mapping[str, Any], count: int) -> np.ndarray:
    if "fraction" not in fields:
        return np.zeros(count, np.int64)
    digits = pc.utf8_slice_codeunits(
        pc.utf8_rpad(pc.fill_null(fields["fraction"], ""), 6, "0"), 0, 6
    )
    return np.asarray(digits.cast(pa.int64()))


def _zone(fields: Mapping[str, Any], count: int) -> np.ndarray:
    """Microseconds by which each clock is ahead of UTC."""
    if "zone" not in fields:
        return np.zeros(count, np.int64)
    zones = fields["zone"].dictionary_encode()
    ahead = [_ahead(zone) for zone in zones.dictionary.to_pylist()]
    return np.array([*ahead, 0])[np.asarray(pc.fill_null(zones.indices, len(ahead)))]


def _ahead(zone: str) -> int:
    if zone[:1] not in ("+", "-"):
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[3:].lstrip(":") or 0)
    return (-1 if zone[0] == "-" else 1) * minutes * 60_000_000


_YEAR = 365.25 * 86_400_000_000  # microseconds
_USUAL = (30 * _YEAR, 70 * _YEAR, 20 * _YEAR)  # 2000 to 2040, not over more than 20 years
_NAMED = (10 * _YEAR, 130 * _YEAR, 130 * _YEAR)  # 1980 to 2100


def epoch_of(low: float, high: float, *, is_date: bool, is_time: bool) -> str | None:
    """The format of numbers that count time, told by the least and the largest; None for others.

    Args:
        is_date: whether the column is named for a date: only then are small numbers days.
        is_time: whether it is named for a time.
    """
    first, last, most = _NAMED if is_time or is_date else _USUAL
    for name, (micros, start) in SINCE.items():
        if name == "excel" and not is_date:
            continue
        since = float((start - np.datetime64(0, "us")).astype(np.int64))
        begin, end = (number * micros + since for number in (low, high))
        if first <= begin and end <= last and end - begin <= most:
            return name
    return None


def _since(column: Column, micros: float, start: np.datetime64) -> Column:
    """Times counted in numbers from a moment."""
    number = pc.match_substring_regex(column, r"^-?[0-9]{1,19}(\.[0-9]*)?([eE]\+?[0-9]{1,2})?$")
    digits = pc.if_else(number, column, pa.scalar(None, column.type)).cast(pa.float64())
    counted = np.round(np.asarray(digits) * micros)
    good = np.abs(counted) < 2.5e17  # beyond the year 9999
    offset = np.where(good, counted, 0).astype(np.int64).astype("timedelta64[us]")
    return pa.chunked_array([pa.array(np.where(good, start + offset, _NAT)).cast(UTC_MICROSECONDS)])
