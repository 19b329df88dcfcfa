"""What a series is, and how far ahead and back a forecast looks."""

from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Interval

from models.config.common import STRICT, ColumnName

Steps = Annotated[int, Interval(ge=1, le=1_000)]


@dataclass(frozen=True, kw_only=True)
class ForecastConfig:
    """Which column tells the time, which one tells several series apart; all lengths in steps.

    A window reads `context` steps, each beside the one a `season` before it. `transform` "log" is
    for series whose swings grow with their level: it forecasts logarithms and needs values above 0.
    """

    __pydantic_config__ = STRICT
    time: ColumnName | None = None
    key: ColumnName | None = None
    horizon: Steps | None = None
    context: Steps | None = None
    season: Steps | None = None
    transform: Literal["log", "none"] | None = None
