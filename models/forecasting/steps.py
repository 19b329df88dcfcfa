"""The steps of a series: the spacing of their times.

A step lasts from its time to the next one's; a step of months is of whole calendar months.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Int64
from pydantic import Field

from models.config.ranges import Flag, Positive
from models.exceptions import InvalidData
from models.features.clock import Clock

_MINUTE = 60_000_000  # microseconds
_HOUR, DAY = 60 * _MINUTE, 24 * 60 * _MINUTE
_WEEK = 7 * DAY
_SHORTEST_MONTH, _MONTH = 28 * DAY, 365.2425 / 12 * DAY
_MOST_STEPS = 1_000  # of a season
_FARTHEST = 2**32  # steps between two rows
_EACH_DAY = "1111111"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Times of each weekday that occurs, before the others count as closed: of days that are absent at
# random, one in ten, a given weekday is absent in four weeks once in 10,000 cases.
_WEEKS = 4

Days = Int64[np.ndarray, "steps"]
Week = Annotated[str, Field(pattern="^[01]{7}$")]


@dataclass(frozen=True)
class Spacing:
    """The usual step between times.

    Args:
        step: a number of months, open days, microseconds or units.
        month_end: whether each time is on the last day of its month.
        is_regular: whether all gaps in training were whole numbers of steps, and fewer steps were
            absent than there were rows. The steps in between are then inserted as missing; if not,
            rows count as consecutive steps.
        week: of the unit weekday, whether Monday to Sunday have a step: "1111100".
        zone: the time zone whose clock the days follow; None for UTC. Times are UTC all the same.
    """

    unit: Literal["month", "weekday", "microsecond", "number"]
    step: Positive
    month_end: Flag = False
    is_regular: Flag = True
    week: Week = _EACH_DAY
    zone: Annotated[str, Field(min_length=1, max_length=64)] | None = None

    @classmethod
    def fit(cls, series: Sequence[np.ndarray], zone: str | None = None) -> "Spacing":
        """The most common of all steps.

        Raises:
            InvalidData: if no series has two times.
        """
        series = [times for times in series if len(times) > 1]
        if not series:
            raise InvalidData("no series has two steps with a target", "/dataset")
        usual = cls._usual(series)
        if zone is not None:
            clock = Clock.of(zone)
            on_clock = replace(cls._usual([clock.local(times) for times in series]), zone=zone)
            usual = on_clock if on_clock._counts_days else replace(usual, zone=zone)  # noqa: SLF001
        is_whole = all(bool(usual.is_whole(times).all()) for times in series)
        rows = sum(len(times) for times in series)
        return replace(usual, is_regular=is_whole and sum(map(usual.absent, series)) <= rows)

    @classmethod
    def _usual(cls, series: Sequence[np.ndarray]) -> "Spacing":
        if not np.issubdtype(series[0].dtype, np.datetime64):
            return cls("number", _most_common([np.diff(times) for times in series]))
        micros = [np.diff(times).astype(np.int64) for times in series]
        step, every = _most_common(micros), np.concatenate(list(series))
        if np.median(np.concatenate(micros)) >= _SHORTEST_MONTH:
            months = [np.diff(_months(times)) for times in series]
            month_end = bool((_months(every + np.timedelta64(1, "D")) > _months(every)).all())
            on_one_day = len(np.unique(_within_month(every))) == 1
            # days that differ from month to month, as last working days do; not every 28 days
            differ = any(bool((gaps % step).any()) for gaps in micros)
            once_a_month = differ and np.concatenate(months).min() > 0
            if month_end or on_one_day or once_a_month:
                return cls("month", _most_common(months), month_end)
        week = _open_days(every) if step == DAY else _EACH_DAY
        return cls("microsecond", step) if week == _EACH_DAY else cls("weekday", 1.0, week=week)

    def is_whole(self, times: np.ndarray) -> np.ndarray:
        """Of each gap between these times, whether it is a whole number of steps, at least one."""
        steps = self._gaps(times) / self.step
        return (steps > 0.5) & np.isclose(steps, np.round(steps), rtol=1e-6, atol=0)

    def gaps(self, times: np.ndarray) -> np.ndarray:
        """The steps from each time to the next, rounded."""
        return np.clip(np.round(self._gaps(times) / self.step), 1, _FARTHEST).astype(np.int64)

    def absent(self, times: np.ndarray) -> int:
        """How many steps between these times have no row."""
        return int((self.gaps(times) - 1).sum())

    def after(self, times: np.ndarray, count: int) -> np.ndarray:
        """The `count` times that come after these."""
        if self.zone is not None and self._counts_days:
            after = replace(self, zone=None).after(self.local(times[-1:]), count)
            return Clock.of(self.zone).instants(after)[0]
        last = times[-1:]
        ahead = np.arange(1, count + 1) * self.step
        if self.unit == "number":
            return last + ahead
        if self.unit == "microsecond":
            return last + ahead.astype("timedelta64[us]")
        if self.unit == "weekday":
            days = np.busday_offset(_days(last), ahead.astype(np.int64), weekmask=self.week)
            return days.astype("datetime64[us]") + (last - _days(last))
        if self.month_end:  # the same time before the next month begins
            before = _start(_months(last) + 1) - last
            starts = _start(_months(last) + 1 + ahead.astype(np.int64))
            return starts - before
        months = _start(_months(last) + ahead.astype(np.int64))
        longest = _start(_months(months) + 1) - months - np.timedelta64(1, "D")
        return months + np.minimum(_within_month(last), longest)

    def describe(self) -> str:
        """The step in words."""
        if self.unit == "month":
            return "a month" if self.step == 1 else f"{self.step:g} months"
        if self.unit == "weekday":
            open_ = [day for day, one in zip(_DAYS, self.week, strict=True) if one == "1"]
            return f"a day of {', '.join(open_)}"
        if self.unit == "number":
            return f"{self.step:g}"
        return str(timedelta(microseconds=self.step))

    @property
    def microseconds(self) -> float:
        """The length of a step between datetimes; for months the average, for weekdays a day."""
        return self.step * {"month": _MONTH, "weekday": DAY}.get(self.unit, 1.0)

    @property
    def seasons(self) -> tuple[int, ...]:
        """Steps in the calendar's cycles: `season`, and a week if that is a day."""
        week = _WEEK // self.step if self.unit == "microsecond" else 0
        has_week = self.season * self.step == DAY and self.season > 1 and week <= _MOST_STEPS
        return (self.season, int(week)) if has_week else (self.season,)

    @property
    def season(self) -> int:
        """Steps in the calendar's cycle for this spacing (year, week, day or hour), or 1."""
        if self.unit == "number":
            return 1
        if self.unit == "month":
            return int(12 // self.step) if 12 % self.step == 0 else 1
        if self.unit == "weekday":
            return self.week.count("1")
        if self.step == _WEEK:
            return 52
        cycles = (_WEEK,) if self.step == DAY else (DAY, _HOUR, _MINUTE)
        turns = [int(cycle // self.step) for cycle in cycles if cycle % self.step == 0]
        return next((turn for turn in turns if 1 < turn <= _MOST_STEPS), 1)

    def local(self, times: np.ndarray) -> np.ndarray:
        """What the clock of the zone shows at these times."""
        return times if self.zone is None else Clock.of(self.zone).local(times)

    def days(self, times: np.ndarray) -> tuple[Days, Days]:
        """The first day of each step, by the clock, and the day after its last one.

        Args:
            times: of the steps. Days count from 1970-01-01.
        """
        times = self.local(times)
        if self.unit == "month":
            count = int(self.step)
            first = _months(times) - count + 1 if self.month_end else _months(times)
            starts, stops = (
                _days(_start(months)).astype(np.int64) for months in (first, first + count)
            )
            return starts, stops
        length = np.timedelta64(round(self.microseconds), "us")
        starts, stops = (_days(ends).astype(np.int64) for ends in (times, times + length))
        return starts, np.maximum(stops, starts + 1)

    @property
    def _counts_days(self) -> bool:
        """Whether steps are days of a calendar or longer: these have 23 to 25 hours in some zones.

        Shorter steps have the same length all the time.
        """
        return self.unit in ("month", "weekday") or (
            self.unit == "microsecond" and self.step % DAY == 0
        )

    def _gaps(self, times: np.ndarray) -> np.ndarray:
        if self._counts_days:
            times = self.local(times)
        if self.unit == "number":
            return np.diff(times)
        if self.unit == "microsecond":
            return np.diff(times).astype(np.int64)
        if self.unit == "weekday":
            days = _days(times)
            gaps = np.busday_count(days[:-1], days[1:], weekmask=self.week)
            on_time = np.diff(times - days).astype(np.int64) == 0
            return np.where(on_time & np.is_busday(days[1:], weekmask=self.week), gaps, 0)
        return np.diff(_months(times))


def _months(times: np.ndarray) -> np.ndarray:
    """Months since 1970, as datetime64[M]'s integers."""
    return times.astype("datetime64[M]").astype(np.int64)


def _start(months: np.ndarray) -> np.ndarray:
    """The first moment of each month."""
    return months.astype("datetime64[M]").astype("datetime64[us]")


def _days(times: np.ndarray) -> np.ndarray:
    return times.astype("datetime64[D]")


def _open_days(times: np.ndarray) -> str:
    """The weekdays of daily times, as `Spacing.week`: all, unless some never occur for long."""
    days = _days(times)
    counts = np.bincount((days.astype(np.int64) + 3) % 7, minlength=7)  # day 0 was a Thursday
    is_open = counts > 0
    if len(np.unique(times - days)) > 1 or counts[is_open].min() < _WEEKS:
        return _EACH_DAY
    return "".join("1" if one else "0" for one in is_open)


def _within_month(times: np.ndarray) -> np.ndarray:
    return times - _start(_months(times))


def _most_common(steps: Sequence[np.ndarray]) -> float:
    values, counts = np.unique(np.concatenate(list(steps)), return_counts=True)
    return float(values[counts.argmax()])
