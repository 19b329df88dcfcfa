"""What all methods of the client stand on."""

from typing import Any, TypeVar

from credence.client.flows import Flow, Listing
from credence.client.requests import Request, creation, request, text
from credence.client.retries import Retries, exchange
from credence.standalone import references, with_references

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

    def page_as_file(self, path: str) -> Flow[str]:
        """A page of the service as one HTML file: its styles and scripts are put into it."""
        page = yield from self.call("GET", path, headers={"Accept": "text/html"}, read=text)
        found = {}
        for address in references(page):
            found[address] = yield from self.call("GET", address, read=text)
        return with_references(page, found)

    def create(self, path: str, **options: Any) -> Flow[Any]:
        """See `requests.creation`."""
        return self.send(creation(path, **options))

    def pages(self, path: str, **filters: str | None) -> Listing[Any]:
        """A list, with what it is filtered by."""
        return Listing(lambda cursor: self.call("GET", path, params={**filters, "cursor": cursor}))
