"""Bytes that are not HTTP, or hardly: what a socket may say, and what may be answered."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

HEAD = b"HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
JSON = b"Content-Type: application/json\r\n"
GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" + JSON
SMUGGLED = b"GET /models HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = b"a" * 100_000

REFUSED: dict[str, bytes] = {
    "no http": b"hello\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    "http 9": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "no version": b"GET /nowhere\r\nHost: localhost\r\n\r\n",
    "length twice": POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "signed length": POST + b"Content-Length: +2\r\n\r\n{}",
    "long length": POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    "both lengths": POST
    + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "unknown coding": POST + b"Transfer-Encoding: identity, cow\r\n\r\n{}",
    "not last chunked": POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "spaced name": GET + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunk of no size": POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
    "huge chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n{}",
    "nul in a header": GET + b"X-A: a\0b\r\n\r\n",
    "bare return": GET + b"X-A: a\rb\r\n\r\n",
    "non-ascii path": b"GET /models/\xe9 " + HEAD + b"\r\n",
    "long header": GET + b"X-A: " + LONG * 10 + b"\r\n\r\n",
    "many headers": GET + b"".join(b"X-%d: a\r\n" % i for i in range(20_000)) + b"\r\n",
    "endless header": GET + b"X-A: " + LONG * 100,
    "long path": b"GET /" + LONG * 10 + b" " + HEAD + b"\r\n",
    "connect": b"CONNECT example.org:443 " + HEAD + b"\r\n",
    "foreign": b"GET http://169.254.169.254/latest " + HEAD + b"\r\n",
    "dots": b"GET /docs/assets/../../../../../etc/passwd " + HEAD + b"\r\n",
    "escaped dots": b"GET /docs/assets/%2e%2e/%2e%2e/%2e%2e/etc/passwd " + HEAD + b"\r\n",
    "escaped slashes": b"GET /ui/static/..%2f..%2f..%2fetc%2fpasswd " + HEAD + b"\r\n",
    "nul in a path": b"GET /ui/static/a%00b " + HEAD + b"\r\n",
    "half a surrogate": b"GET /models/%ed%a0%80 " + HEAD + b"\r\n",
    "strange type": b"POST /predict " + HEAD + b"Content-Type: \xff/\xfe; charset*=x''%ff"
    b"\r\nContent-Length: 2\r\n\r\n{}",
    "continued type": b"POST /predict " + HEAD + b"Content-Type: application/json; "
    b"charset*0*=utf-8''%; charset*99999999999999999999=x\r\nContent-Length: 2\r\n\r\n{}",
    "upgrade": GET.replace(b"/health/live", b"/predict")
    + b"Upgrade: websocket\r\nConnection: Upgrade, close\r\nSec-WebSocket-Key: eA==\r\n"
    + b"Sec-WebSocket-Version: 13\r\n\r\n",
}
"""Each gets a 4xx, or no answer and the end of the connection."""


def refused(url: str, name: str, data: bytes) -> int:
    """The status of the only answer to it, which is a refusal."""
    said = statuses(send(url, data))
    assert len(said) == 1, f"{name}: {said}"
    assert 400 <= said[0] < 500, f"{name}: {said}"
    return said[0]


def send(url: str, data: bytes, timeout_seconds: float = 30.0) -> bytes:
    """All that the server says until it closes."""
    with _connected(url, timeout_seconds) as connection:
        with suppress(OSError):  # it may hang up while we still speak
            connection.sendall(data)
        return b"".join(_received(connection))


def statuses(said: bytes) -> list[int]:
    """Those of all answers in it."""
    parts = said.split(b"HTTP/1.1 ")[1:]
    return [int(part[:3]) for part in parts]


def hold(url: str, data: bytes) -> socket.socket:
    """Say only this, and stay."""
    connection = _connected(url, 30.0)
    connection.sendall(data)
    return connection


def _connected(url: str, timeout_seconds: float) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout_seconds)


def _received(connection: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        while data := connection.recv(2**16):
            yield data
