"""Sends requests to the service, and repeats them after a failure if that is safe."""

import time
from itertools import count
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx

from credence.client.operations import Listing, Operation, Sleep
from credence.client.requests import Request, creation, request, text
from credence.client.retries import NOT_STARTED, UNCERTAIN, Retries, retry_after
from credence.client.standalone_page import references, with_references
from credence.exceptions import ClientError, CredenceAPIError, ServiceUnreachable

T = TypeVar("T")


class Calls:
    """Requests to the service at `url`; a refusal raises `CredenceAPIError`."""

    url: str
    retries: Retries
    progress: bool

    def send(self, request: Request[T]) -> Operation[T]:
        """Send a request and read its response.

        Raises:
            CredenceAPIError: the service refuses.
            ServiceUnreachable: there is no response.
        """
        deadline = time.monotonic() + self.retries.total_seconds
        for failures in count(1):
            retry_after_seconds = None
            try:
                response = yield request
            except httpx.UnsupportedProtocol as error:
                advice = f"write it as http://{self.url.rpartition('://')[2]}"
                raise ServiceUnreachable(self.url, str(error), advice) from error
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
                failure: ClientError = ServiceUnreachable(self.url, reason)
                not_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                may_repeat = request.repeatable or not_sent
            else:
                if not response.is_error:
                    return request.read(response)
                failure = CredenceAPIError.from_response(response)
                status = response.status_code
                may_repeat = status in NOT_STARTED or (request.repeatable and status in UNCERTAIN)
                retry_after_seconds = retry_after(response.headers.get("Retry-After"))
            pause = self.retries.pause(failures, retry_after_seconds)
            too_late = failures > self.retries.times or time.monotonic() + pause > deadline
            if not may_repeat or too_late:
                raise failure
            yield Sleep(pause)
        raise AssertionError("the loop has no end")

    def call(self, method: str, path: str, **options: Any) -> Operation[Any]:
        """See `requests.request`."""
        return self.send(request(method, path, **options))

    def page_as_file(self, path: str) -> Operation[str]:
        """A page of the service as one HTML file, with its styles and scripts inline."""
        page = yield from self.call("GET", path, headers={"Accept": "text/html"}, read=text)
        found = {}
        prefix = urlsplit(self.url).path  # which a link has, and httpx adds to a path
        for address in references(page):
            path = address.removeprefix(prefix)
            found[address] = yield from self.call("GET", path, read=text)
        return with_references(page, found)

    def create(self, path: str, **options: Any) -> Operation[Any]:
        """See `requests.creation`."""
        return self.send(creation(path, **options))

    def pages(self, path: str, **filters: str | None) -> Listing[Any]:
        """A filtered list, page after page."""
        return Listing(lambda cursor: self.call("GET", path, params={**filters, "cursor": cursor}))
