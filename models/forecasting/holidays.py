"""Holidays as inputs of steps: how many lie within a step, and whether they are next to it.

A step is from its time to the next one's; a step of months is of whole calendar months. Where times
are the ends of steps, the step before tells the same: windows read it, too.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float, Int64
from pydantic import Field
from torch import Tensor

from models.exceptions import InvalidInput
from models.forecasting.spacing import Spacing

_DAY = 86_400e6  # microseconds

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
        return 3 if _is_short(spacing) else 1

    def read(self, times: np.ndarray, spacing: Spacing) -> Float[Tensor, "steps width"]:
        """Of each step the number of holidays within it and, for steps of a day or less, whether
        the next day and the day before are holidays.

        Raises:
            InvalidInput: if holidays of a step are not known.
        """
        starts, stops = _days_of(spacing.local(times), spacing)
        self._check(starts, stops)
        counts = [self._within(starts, stops)]
        if _is_short(spacing):
            counts += [self._within(starts + shift, stops + shift) for shift in (1, -1)]
        return torch.from_numpy(np.stack(counts, axis=1).astype(np.float32))

    def _within(self, starts: Days, stops: Days) -> Days:
        days = np.array(self.days, dtype=np.int64)
        return np.searchsorted(days, stops) - np.searchsorted(days, starts)

    def _check(self, starts: Days, stops: Days) -> None:
        for wrong in (starts[starts < self.first], stops[stops > self.last + 1]):
            if len(wrong):
                first, last, day = (_date(one) for one in (self.first, self.last, int(wrong[0])))
                raise InvalidInput(
                    f"this model knows the holidays from {first} to {last}, and not of {day}: "
                    "train it again",
                    "/inputs",
                )


def _is_short(spacing: Spacing) -> bool:
    return spacing.microseconds <= _DAY


def _days_of(times: np.ndarray, spacing: Spacing) -> tuple[Days, Days]:
    """The first day of each step, and the day after its last one."""
    if spacing.unit == "month":
        months, count = times.astype("datetime64[M]").astype(np.int64), int(spacing.step)
        first = months - count + 1 if spacing.month_end else months
        return _first_days(first), _first_days(first + count)
    length = np.timedelta64(round(spacing.microseconds), "us")
    starts, stops = _day(times), _day(times + length)
    return starts, np.maximum(stops, starts + 1)


def _day(times: np.ndarray) -> Days:
    return times.astype("datetime64[D]").astype(np.int64)


def _first_days(months: np.ndarray) -> Days:
    return _day(months.astype("datetime64[M]"))


def _date(day: int) -> str:
    return str(np.datetime64(day, "D"))
