"""The holidays that lie in the steps of a series: inputs that are known ahead.

`core.calendars` finds the days; a version keeps them. Where times are the ends of steps, the step
before has the holidays, and windows read it, too.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from annotated_types import Len
from jaxtyping import Float
from pydantic import Field
from torch import Tensor

from models.exceptions import InvalidInput
from models.forecasting.steps import DAY, Days, Spacing

# Days since 1970-01-01. The bounds are the years 1 and 9999.
Day = Annotated[int, Field(strict=True, ge=-719_162, le=2_932_896)]


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
        return 3 if spacing.microseconds <= DAY else 1

    def read(self, times: np.ndarray, spacing: Spacing) -> Float[Tensor, "steps width"]:
        """Of each step the number of holidays within it and, for steps of a day or less, whether
        the next day and the day before are holidays.

        Raises:
            InvalidInput: if holidays of a step are not known.
        """
        starts, stops = spacing.days(times)
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
