"""What all methods of the client stand on."""

from typing import Any, TypeVar

from credence.client.flows import Flow, Listing
from credence.client.requests import Request, creation, request
from credence.client.retries import Retries, exchange

T = TypeVar("T")


class Calls:
    """Requests to the service at `url`; what is refused raises `CredenceAPIError`."""

    url: str
    retries: Retries
    progress: bool

    def send(self, request: Request[T]) -> Flow[T]:
        """The answer of one request, which is sent again where that helps."""
        return exchange(request, self.retries, self.url)

    def call(self, method: str, path: str, **options: Any) -> Flow[Any]:
        """See `requests.request`."""
        return self.send(request(method, path, **options))

    def create(self, path: str, **options: Any) -> Flow[Any]:
        """See `requests.creation`."""
        return self.send(creation(path, **options))

    def pages(self, path: str, **filters: str | None) -> Listing[Any]:
        """A list, with what it is filtered by."""
        return Listing(lambda cursor: self.call("GET", path, params={**filters, "cursor": cursor}))
