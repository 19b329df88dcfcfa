"""When a request is sent again, and after how long.

Exponential backoff with full jitter: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture
Blog, 2015. What a service asks for with `Retry-After` counts instead.
"""

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

import httpx

from credence.client.flows import Flow, Sleep
from credence.client.requests import Request
from credence.exceptions import ClientError, CredenceAPIError, ServiceUnreachable

T = TypeVar("T")

NOTHING_WAS_DONE = (429, 503)  # refused before any work: even what is not repeatable may come again
PERHAPS_DONE = (502, 504)  # a proxy's: nobody knows what became of the request


@dataclass(frozen=True)
class Retries:
    """At most so many tries after the first one, none begun later than `total_seconds`."""

    times: int = 4
    total_seconds: float = 60.0
    first_seconds: float = 0.25
    longest_seconds: float = 8.0

    def pause(self, failures: int, asked_seconds: float | None) -> float:
        """Seconds until the next try; what the service asked for counts."""
        if asked_seconds is not None:
            return asked_seconds
        ceiling = min(self.longest_seconds, self.first_seconds * 2.0 ** (failures - 1))
        return random.uniform(0.0, ceiling)  # noqa: S311 - no secret


def exchange(request: Request[T], retries: Retries, url: str) -> Flow[T]:
    """Send a request, again where that helps and does no harm, and read its answer.

    Raises:
        CredenceAPIError: the service refuses.
        ServiceUnreachable: there is no answer.
    """
    deadline = time.monotonic() + retries.total_seconds
    for failures in count(1):
        asked_seconds = None
        try:
            response = yield request
        except httpx.UnsupportedProtocol as error:
            address = url.rpartition("://")[2]
            raise ServiceUnreachable(url, str(error), f"write it as http://{address}") from error
        except httpx.TransportError as error:
            failure: ClientError = ServiceUnreachable(url, str(error) or type(error).__name__)
            may_repeat = request.repeatable or isinstance(
                error, httpx.ConnectError | httpx.ConnectTimeout
            )
        else:
            if not response.is_error:
                return request.read(response)
            failure = CredenceAPIError.from_response(response)
            may_repeat = _may_repeat(request, response.status_code)
            asked_seconds = retry_after(response.headers.get("Retry-After"))
        pause = retries.pause(failures, asked_seconds)
        if not may_repeat or failures > retries.times or time.monotonic() + pause > deadline:
            raise failure
        yield Sleep(pause)
    raise AssertionError("the loop has no end")


def retry_after(header: str | None) -> float | None:
    """Seconds from now, of a number of them or of a date; None where it is neither."""
    if header is None:
        return None
    if header.isdigit():
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, (moment.astimezone(UTC) - datetime.now(UTC)).total_seconds())


def _may_repeat(request: Request[T], status: int) -> bool:
    return status in NOTHING_WAS_DONE or (request.repeatable and status in PERHAPS_DONE)
