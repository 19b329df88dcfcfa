"""Which failed requests are repeated, and when.

Exponential backoff with full jitter: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture
Blog, 2015. A `Retry-After` of the service has priority.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

NOT_STARTED = (429, 503)  # refused before any work: repeating is safe
UNCERTAIN = (502, 504)  # sent by a proxy: the service may have done the work


@dataclass(frozen=True)
class Retries:
    """At most `times` retries; none starts later than `total_seconds` after the first try."""

    times: int = 4
    total_seconds: float = 60.0
    first_seconds: float = 0.25
    longest_seconds: float = 8.0

    def pause(self, failures: int, retry_after_seconds: float | None) -> float:
        """Seconds until the next try."""
        if retry_after_seconds is not None:
            return retry_after_seconds
        ceiling = min(self.longest_seconds, self.first_seconds * 2.0 ** (failures - 1))
        return random.uniform(0.0, ceiling)  # noqa: S311 - no secret


def retry_after(header: str | None) -> float | None:
    """Seconds to wait, from a header that has seconds or a date; None for anything else."""
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())
