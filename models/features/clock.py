"""Clock times of a time zone: local times and instants in UTC, also where the clock is changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np

_FIRST, _LAST = 1900, 2100  # years in which changes of the clock are looked for
_DAY = 86_400_000_000  # microseconds
_HOUR, _MINUTE, _WEEK = _DAY // 24, _DAY // 1440, 7 * _DAY
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Clock:
    """The changes of a clock.

    Args:
        changes: instants in microseconds since 1970, in UTC.
        offsets: microseconds by which the clock is ahead of UTC: before the first change, and from
            each change on.
    """

    zone: str
    changes: np.ndarray
    offsets: np.ndarray

    @staticmethod
    @lru_cache(maxsize=64)  # a table takes 20 ms
    def of(zone: str) -> "Clock":
        """
        Raises:
            ValueError: if there is no such zone; the message names those that are near.
        """
        try:
            place = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(_unknown(zone)) from None
        ends = (datetime(year, 1, 1, tzinfo=UTC) for year in (_FIRST, _LAST))
        first, last = ((end - _EPOCH) // timedelta(microseconds=1) for end in ends)
        changes, offsets, before = list[int](), [_offset(place, first)], first
        for at in range(first + _WEEK, last, _WEEK):
            if (offset := _offset(place, at)) != offsets[-1]:
                changes.append(_change(place, before, at))
                offsets.append(offset)
            before = at
        return Clock(zone, np.array(changes, np.int64), np.array(offsets, np.int64))

    def local(self, instants: np.ndarray) -> np.ndarray:
        """What the clock shows at instants in UTC.

        The first moment of a day that begins with a skipped hour is shown as midnight.
        """
        micros = _micros(instants)
        place = np.searchsorted(self.changes, micros, side="right")
        if len(self.changes):
            last = np.maximum(place - 1, 0)
            is_midnight = (self.changes + self.offsets[:-1]) % _DAY == 0
            begins = (place > 0) & (self.changes[last] == micros) & (self._jumps > 0)[last]
            place = place - (begins & is_midnight[last])
        return instants + self.offsets[place].astype("timedelta64[us]")

    def instants(self, local: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Instants in UTC of clock times, and which of these the clock skipped.

        A time that comes twice is the first of the two. A skipped midnight is the first moment of
        its day, and does not count as skipped.
        """
        micros, jumps = _micros(local), self._jumps
        place = np.searchsorted(
            self.changes + np.maximum(self.offsets[:-1], self.offsets[1:]), micros, side="right"
        )
        found = local - self.offsets[place].astype("timedelta64[us]")
        if not len(self.changes):
            return found, np.zeros(len(local), dtype=bool)
        following = np.minimum(place, len(self.changes) - 1)
        begin = self.changes[following] + self.offsets[:-1][following]
        skipped = (place < len(self.changes)) & (jumps[following] > 0) & (micros >= begin)
        return found, skipped & ~((micros == begin) & (begin % _DAY == 0)) & ~np.isnat(local)

    def repeats(self, instants: np.ndarray) -> np.ndarray:
        """After how long the clock shows the time of each instant again; 0 if it does not."""
        if not len(self.changes):
            return np.zeros(len(instants), dtype="timedelta64[us]")
        micros = _micros(instants)
        place = np.searchsorted(self.changes, micros, side="right")
        following = np.minimum(place, len(self.changes) - 1)
        back = -self._jumps[following]
        again = (
            (place < len(self.changes)) & (back > 0) & (micros >= self.changes[following] - back)
        )
        return np.where(again, back, 0).astype("timedelta64[us]")

    def standard(self, local: np.datetime64) -> str | None:
        """The zone whose clock always shows what this one does before a time; None if unnamed."""
        at = np.array([local], "datetime64[us]")
        offset = int((at - self.instants(at)[0]).astype(np.int64)[0])
        hours = offset // _HOUR
        return f"Etc/GMT{-hours:+d}" if offset % _HOUR == 0 and hours else None

    @property
    def _jumps(self) -> np.ndarray:
        return np.diff(self.offsets)


def second_times(clock: Clock, instants: np.ndarray, keys: np.ndarray | None) -> np.ndarray:
    """The instants with the second of two equal ones an hour later where the clock is set back.

    The order of a series' rows tells which is the second: rows may also begin with the newest.

    Args:
        keys: the series of each row; None of one series.
    """
    repeats = clock.repeats(instants)
    rows = np.flatnonzero(repeats)
    if not len(rows):
        return instants
    named = np.zeros(len(instants)) if keys is None else keys.astype(str)
    keys = np.unique(named, return_inverse=True)[1]
    found, first, moved = instants.copy(), dict[tuple[int, int], int](), set[tuple[int, int]]()
    _, begin = np.unique(keys, return_index=True)
    _, end = np.unique(keys[::-1], return_index=True)
    falling = instants[len(keys) - 1 - end] < instants[begin]  # the last row before the first
    for row, key, time in zip(
        rows.tolist(), keys[rows].tolist(), _micros(instants)[rows].tolist(), strict=True
    ):
        before = first.setdefault((key, time), row)
        if before != row and (key, time) not in moved:
            moved.add((key, time))
            later = before if falling[key] else row
            found[later] = instants[later] + repeats[later]
    return found


def microseconds(values: np.ndarray) -> np.ndarray:
    """Microseconds since 1970 as float64 (exact until the year 2255), NaN where missing."""
    times = values.astype("datetime64[us]")
    return np.where(np.isnat(times), np.nan, times.astype(np.int64).astype(np.float64))


def _micros(times: np.ndarray) -> np.ndarray:
    return times.astype("datetime64[us]").astype(np.int64)


def _offset(place: ZoneInfo, at: int) -> int:
    offset = (_EPOCH + timedelta(microseconds=at)).astimezone(place).utcoffset()
    return (offset or timedelta()) // timedelta(microseconds=1)


def _change(place: ZoneInfo, before: int, after: int) -> int:
    """The minute of the change between two instants."""
    offset = _offset(place, before)
    low, high = before // _MINUTE, -(-after // _MINUTE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _offset(place, middle * _MINUTE) == offset else (low, middle)
    return high * _MINUTE


def _unknown(zone: str) -> str:
    known: Sequence[str] = sorted(available_timezones())
    by_end = {name.rpartition("/")[2].casefold(): name for name in known}
    wanted = zone[:64].strip().replace(" ", "_").casefold()
    near = by_end.get(wanted) or next(
        iter(get_close_matches(wanted, [name.casefold() for name in known], 1, 0.8)), None
    )
    named = {name.casefold(): name for name in known}
    hint = f"; {named.get(near.casefold(), near)!r} is near" if near else ""
    return f"{zone[:64]!r} is not a time zone{hint}: give an IANA name such as 'Europe/Berlin'"
