"""A file on a host, by HTTPS, at an address that was checked (`core.sources.places.pinned`)."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from core.exceptions import Invalid, Unavailable
from core.sources.budget import Budget
from core.sources.places.pinned import Refused, Unknown, connected, reason
from core.sources.places.place import File, copy
from core.sources.rules import URI
from core.sources.secrets import HttpsSecret


class Web:
    """The files of one host."""

    def __init__(self, authority: str, secret: HttpsSecret | None) -> None:
        """`authority` is the host as `name:port`."""
        host, _, port = authority.rpartition(":")
        self._host, self._port, self._secret = host, int(port), secret

    def files(self, below: str, budget: Budget) -> Iterator[File]:
        raise Invalid([(URI, f"{self._uri(below)}: a host lists no files: name one file")])

    def fetch(self, file: File, to: Path, budget: Budget) -> File:
        uri = self._uri(file.path)
        with self._connected(uri, budget) as connection:
            connection.request("GET", "/" + quote(file.path), headers=self._headers())
            answer = connection.getresponse()
            _check(uri, answer)
            size = copy(answer, to, budget)
            if answer.length:  # of bytes that did not come
                raise Unavailable(f"{uri}: the host closed the connection too early")
            tag = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            return File(file.path, size, tag and tag.strip('"')[:200])

    def _headers(self) -> dict[str, str]:
        port = "" if self._port == 443 else f":{self._port}"
        headers = {"Host": self._host + port, "Accept": "*/*", "Accept-Encoding": "identity"}
        if self._secret is not None and self._secret.token is not None:
            headers["Authorization"] = f"Bearer {self._secret.token.get_secret_value()}"
        return headers

    @contextmanager
    def _connected(self, uri: str, budget: Budget) -> Iterator[http.client.HTTPConnection]:
        """A connection, pinned to an address that was checked."""
        ca_file = None if self._secret is None else self._secret.ca_file
        private = self._secret is not None and self._secret.private_address
        seconds = budget.left_seconds
        try:
            with connected(
                self._host, self._port, seconds, private=private, ca_file=ca_file
            ) as connection:
                yield connection
        except Refused as error:
            raise Invalid([(URI, f"{uri}: {error}")]) from None
        except Unknown as error:
            raise Unavailable(f"{uri}: {error}") from None
        except (OSError, http.client.HTTPException) as error:
            _ = budget.left_seconds  # raises if that is why
            raise Unavailable(f"{uri}: {reason(error)}") from None

    def _uri(self, path: str) -> str:
        port = "" if self._port == 443 else f":{self._port}"
        return f"https://{self._host}{port}/{path}"


def _check(uri: str, answer: http.client.HTTPResponse) -> None:
    """Raise for anything but a file."""
    if 300 <= answer.status < 400:
        to = answer.headers.get("Location", "nowhere")[:200]
        raise Invalid([(URI, f"{uri} redirects to {to!r}: give the URI of the file itself")])
    if answer.status in (401, 403):
        raise Invalid([(URI, f"{uri}: the host refuses with {answer.status}")])
    if answer.status in (404, 410):
        raise Invalid([(URI, f"{uri}: does not exist")])
    if answer.status != 200:
        raise Unavailable(f"{uri}: the host answers {answer.status}")
