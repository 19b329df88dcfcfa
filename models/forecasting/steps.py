"""The steps of a series: the spacing of their times, and the holidays that lie in them.

A step lasts from its time to the next one's; a step of months is of whole calendar months. Where
times are the ends of steps, the step before has the holidays, and windows read it, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor

from models.config.ranges import Flag, Positive
from models.exceptions import InvalidData, InvalidInput
from models.features.clock import Clock

_MINUTE = 60_000_000  # microseconds
_HOUR, _DAY = 60 * _MINUTE, 24 * 60 * _MINUTE
_WEEK = 7 * _DAY
_SHORTEST_MONTH, _MONTH = 28 * _DAY, 365.2425 / 12 * _DAY
_MOST_STEPS = 1_000  # of a season
_FARTHEST = 2**32  # steps between two rows
_EACH_DAY = "1111111"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Times of each weekday that occurs, before the others count as closed: of days that are absent at
# random, one in ten, a given weekday is absent in four weeks once in 10,000 cases.
_WEEKS = 4

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
        week = _open_days(every) if step == _DAY else _EACH_DAY
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
        return self.step * {"month": _MONTH, "weekday": _DAY}.get(self.unit, 1.0)

    @property
    def seasons(self) -> tuple[int, ...]:
        """Steps in the calendar's cycles: `season`, and a week if that is a day."""
        week = _WEEK // self.step if self.unit == "microsecond" else 0
        has_week = self.season * self.step == _DAY and self.season > 1 and week <= _MOST_STEPS
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
        cycles = (_WEEK,) if self.step == _DAY else (_DAY, _HOUR, _MINUTE)
        turns = [int(cycle // self.step) for cycle in cycles if cycle % self.step == 0]
        return next((turn for turn in turns if 1 < turn <= _MOST_STEPS), 1)

    def local(self, times: np.ndarray) -> np.ndarray:
        """What the clock of the zone shows at these times."""
        return times if self.zone is None else Clock.of(self.zone).local(times)

    @property
    def _counts_days(self) -> bool:
        """Whether steps are days of a calendar or longer: these have 23 to 25 hours in some zones.

        Shorter steps have the same length all the time.
        """
        return self.unit in ("month", "weekday") or (
            self.unit == "microsecond" and self.step % _DAY == 0
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


# Days since 1970-01-01. The bounds are the years 1 and 9999.
Day = Annotated[int, Field(strict=True, ge=-719_162, le=2_932_896)]
Days = Int64[np.ndarray, "steps"]


@dataclass(frozen=True)
class Holidays:
    """The holidays of a calendar, as a version keeps them.

    Args:
        days: in their order.
        first, last: the period of which they are all holidays.
    """

    days: Annotated[tuple[Day, ...], Len(0, 100_000)]
    first: Day
    last: Day

    @staticmethod
    def width(spacing: Spacing) -> int:
        """The number of inputs of a step: only of a day or less neighbours are read."""
        return 3 if spacing.microseconds <= _DAY else 1

    def read(self, times: np.ndarray, spacing: Spacing) -> Float[Tensor, "steps width"]:
        """Of each step the number of holidays within it and, for steps of a day or less, whether
        the next day and the day before are holidays.

        Raises:
            InvalidInput: if holidays of a step are not known.
        """
        starts, stops = _days_of(spacing.local(times), spacing)
        self._check(starts, stops)
        counts = [self._within(starts, stops)]
        if self.width(spacing) > 1:
            counts += [self._within(starts + shift, stops + shift) for shift in (1, -1)]
        return torch.from_numpy(np.stack(counts, axis=1).astype(np.float32))

    def _within(self, starts: Days, stops: Days) -> Days:
        days = np.array(self.days, dtype=np.int64)
        return np.searchsorted(days, stops) - np.searchsorted(days, starts)

    def _check(self, starts: Days, stops: Days) -> None:
        for wrong in (starts[starts < self.first], stops[stops > self.last + 1]):
            if len(wrong):
                days = np.array([self.first, self.last, wrong[0]]).astype("datetime64[D]")
                raise InvalidInput(
                    f"this model knows the holidays from {days[0]} to {days[1]}, and not of "
                    f"{days[2]}: train it again",
                    "/inputs",
                )


def _days_of(times: np.ndarray, spacing: Spacing) -> tuple[Days, Days]:
    """The first day of each step, and the day after its last one."""
    if spacing.unit == "month":
        count = int(spacing.step)
        first = _months(times) - count + 1 if spacing.month_end else _months(times)
        starts, stops = (
            _days(_start(months)).astype(np.int64) for months in (first, first + count)
        )
        return starts, stops
    length = np.timedelta64(round(spacing.microseconds), "us")
    starts, stops = (_days(ends).astype(np.int64) for ends in (times, times + length))
    return starts, np.maximum(stops, starts + 1)
