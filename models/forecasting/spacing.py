"""The spacing of the steps of a series: months, a fixed duration, or a fixed number."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

import numpy as np

from models.config.ranges import Flag, Positive
from models.exceptions import InvalidData

_MINUTE = 60_000_000  # microseconds
_HOUR, _DAY = 60 * _MINUTE, 24 * 60 * _MINUTE
_WEEK = 7 * _DAY
_SHORTEST_MONTH, _MONTH = 28 * _DAY, 365.2425 / 12 * _DAY
_MOST_STEPS = 1_000  # of a season
_ROUNDING = 1e-6  # of a gap between times that are fractions


@dataclass(frozen=True)
class Spacing:
    """The usual step between times.

    Args:
        step: a number of months, microseconds or units.
        month_end: whether each time is on the last day of its month.
        is_regular: whether all gaps in training were this step.
    """

    unit: Literal["month", "microsecond", "number"]
    step: Positive
    month_end: Flag = False
    is_regular: Flag = True

    @classmethod
    def fit(cls, series: Sequence[np.ndarray]) -> "Spacing":
        """The most common of all steps.

        Raises:
            InvalidData: if no series has two times.
        """
        series = [times for times in series if len(times) > 1]
        if not series:
            raise InvalidData("no series has two steps with a target", "/dataset")
        usual = cls._usual(series)
        return replace(usual, is_regular=not any(usual.irregular(times) for times in series))

    @classmethod
    def _usual(cls, series: Sequence[np.ndarray]) -> "Spacing":
        if not np.issubdtype(series[0].dtype, np.datetime64):
            return cls("number", _most_common([np.diff(times) for times in series]))
        micros = [np.diff(times).astype(np.int64) for times in series]
        every = np.concatenate(list(series))
        if np.median(np.concatenate(micros)) >= _SHORTEST_MONTH:
            month_end = bool((_months(every + np.timedelta64(1, "D")) > _months(every)).all())
            if month_end or len(np.unique(_within_month(every))) == 1:
                months = [np.diff(_months(times)) for times in series]
                return cls("month", _most_common(months), month_end)
        return cls("microsecond", _most_common(micros))

    def irregular(self, times: np.ndarray) -> int:
        """How many of the gaps between these times are not the usual step."""
        return int((np.abs(self._gaps(times) - self.step) > _ROUNDING * self.step).sum())

    def after(self, times: np.ndarray, count: int) -> np.ndarray:
        """The `count` times that come after these."""
        last = times[-1:]
        ahead = np.arange(1, count + 1) * self.step
        if self.unit == "number":
            return last + ahead
        if self.unit == "microsecond":
            return last + ahead.astype("timedelta64[us]")
        if self.month_end:  # the same time before the next month begins
            before = _start(_months(last) + 1) - last
            starts = _start(_months(last) + 1 + ahead.astype(np.int64))
            return starts - before
        months = _start(_months(last) + ahead.astype(np.int64))
        return months + _within_month(last)

    def describe(self) -> str:
        """The step in words."""
        if self.unit == "month":
            return "a month" if self.step == 1 else f"{self.step:g} months"
        if self.unit == "number":
            return f"{self.step:g}"
        return str(timedelta(microseconds=self.step))

    @property
    def microseconds(self) -> float:
        """The length of a step between datetimes; for months the average length."""
        return self.step * (_MONTH if self.unit == "month" else 1.0)

    @property
    def season(self) -> int:
        """Steps in the calendar's cycle for this spacing (year, week, day or hour), or 1."""
        if self.unit == "number":
            return 1
        if self.unit == "month":
            return int(12 // self.step) if 12 % self.step == 0 else 1
        if self.step == _WEEK:
            return 52
        cycles = (_WEEK,) if self.step == _DAY else (_DAY, _HOUR, _MINUTE)
        turns = [int(cycle // self.step) for cycle in cycles if cycle % self.step == 0]
        return next((turn for turn in turns if 1 < turn <= _MOST_STEPS), 1)

    def _gaps(self, times: np.ndarray) -> np.ndarray:
        if self.unit == "number":
            return np.diff(times)
        if self.unit == "microsecond":
            return np.diff(times).astype(np.int64)
        return np.diff(_months(times))


def _months(times: np.ndarray) -> np.ndarray:
    """Months since 1970, as datetime64[M]'s integers."""
    return times.astype("datetime64[M]").astype(np.int64)


def _start(months: np.ndarray) -> np.ndarray:
    """The first moment of each month."""
    return months.astype("datetime64[M]").astype("datetime64[us]")


def _within_month(times: np.ndarray) -> np.ndarray:
    return times - _start(_months(times))


def _most_common(steps: Sequence[np.ndarray]) -> float:
    found, counts = np.unique(np.concatenate(list(steps)), return_counts=True)
    return float(found[counts.argmax()])
