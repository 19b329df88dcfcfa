"""A file on a host, by HTTPS.

The name is resolved once, all its addresses are checked, and the connection goes to one that was
checked: a name that changes its mind meanwhile leads nowhere. The certificate must be the name's.
Redirects and proxies are not followed.
"""

import http.client
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from urllib.parse import quote

from core.exceptions import Invalid, Unavailable
from core.sources.budget import Budget
from core.sources.places.addresses import check_addresses, resolve
from core.sources.places.place import File, copy
from core.sources.rules import URI
from core.sources.secrets import HttpsSecret

SILENCE_SECONDS = 20.0  # without a byte


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
    def _connected(self, uri: str, budget: Budget) -> Iterator[http.client.HTTPSConnection]:
        """A connection that is cut when the time is over, even if a byte comes now and then."""
        connection = self._connect(uri, budget)
        cutter = Timer(budget.left_seconds, _cut, [connection.sock])
        cutter.daemon = True
        cutter.start()
        try:
            yield connection
        except (OSError, http.client.HTTPException) as error:
            _ = budget.left_seconds  # raises if that is why
            raise Unavailable(f"{uri}: {_reason(error)}") from None
        finally:
            cutter.cancel()
            connection.close()

    def _connect(self, uri: str, budget: Budget) -> http.client.HTTPSConnection:
        ca_file = None if self._secret is None else self._secret.ca_file
        private = self._secret is not None and self._secret.private_address
        try:
            address = check_addresses(resolve(self._host, self._port), private=private)
        except OSError:
            raise Unavailable(f"{uri}: the host {self._host} is not known") from None
        except ValueError as error:
            raise Invalid([(URI, f"{uri}: the host {error}: it is not connected to")]) from None
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
        connection = http.client.HTTPSConnection(self._host, self._port)
        wait = min(SILENCE_SECONDS, budget.left_seconds)
        try:
            plain = socket.create_connection((address, self._port), wait)
            connection.sock = context.wrap_socket(plain, server_hostname=self._host)
        except ssl.SSLCertVerificationError as error:
            reason = f"its certificate is not valid ({error.verify_message})"
            raise Invalid([(URI, f"{uri}: {reason}")]) from None
        except OSError as error:
            raise Unavailable(f"{uri}: {_reason(error)}") from None
        return connection

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


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # closed already
        return


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the host does not answer"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return f"the host breaks the protocol ({type(error).__name__})"
