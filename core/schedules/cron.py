"""When a cron expression is due, in the clock time of a place.

Daylight saving as Debian's cron does it: a time that the clock skips is due right after the gap,
and a time that comes twice is due once (`cronsim`).
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from core.exceptions import Invalid

FIELDS = 5  # cronsim also reads a sixth, of seconds
MOST_MISSED = 10_000  # that are counted: a year of hours
EXAMPLE = "minute, hour, day, month and weekday, as in '0 3 * * 1' for Mondays at 3:00"


def check(expression: str, zone: str) -> None:
    """Check an expression and a time zone.

    Raises:
        Invalid: one of them cannot be read, or no day fits the expression.
    """
    try:
        place = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"{zone[:64]!r} is not a time zone: give one as 'Europe/Paris', or 'UTC'"
        raise Invalid([("/time_zone", message)]) from None
    try:
        if (found := len(expression.split())) != FIELDS:
            raise CronSimError(f"{found} fields instead of {FIELDS}")
        next(CronSim(expression, datetime.now(place)))
    except CronSimError as error:
        message = f"{expression[:64]!r} is not a cron expression ({error}): give {EXAMPLE}"
        raise Invalid([("/cron", message)]) from None
    except StopIteration:
        message = f"{expression[:64]!r} is never due in the next 50 years: give {EXAMPLE}"
        raise Invalid([("/cron", message)]) from None


def next_due(expression: str, zone: str, after: datetime) -> datetime:
    """The first due time after a moment, in UTC."""
    return next(_due_times(expression, zone, after))


def count_due(expression: str, zone: str, after: datetime, until: datetime) -> int:
    """How many times are due after a moment and until another, at most `MOST_MISSED`."""
    times = takewhile(lambda time: time <= until, _due_times(expression, zone, after))
    return sum(1 for _, _ in zip(range(MOST_MISSED), times, strict=False))


def _due_times(expression: str, zone: str, after: datetime) -> Iterator[datetime]:
    return (time.astimezone(UTC) for time in CronSim(expression, after.astimezone(ZoneInfo(zone))))
