"""Requests that no well-behaved client sends, byte by byte."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Answer:
    """A response as it came."""

    status: int
    head: str
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header; None if there is none."""
        for line in self.head.splitlines()[1:]:
            key, _, value = line.partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None


def connect(url: str, seconds: float = 30.0) -> socket.socket:
    """A connection to the server of a URL."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    return socket.create_connection((parts.hostname, parts.port), timeout=seconds)


def ask(url: str, method: str, path: str, headers: Sequence[str], body: bytes = b"") -> Answer:
    """Send exactly these header lines, and read until the server closes the connection."""
    lines = [f"{method} {path} HTTP/1.1", *headers, "Connection: close"]
    lines += [f"Content-Length: {len(body)}"] if body else []
    with connect(url) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        return read(connection)


def read(connection: socket.socket) -> Answer:
    """The response, which ends with the connection."""
    pieces = []
    while piece := connection.recv(65_536):
        pieces.append(piece)
    head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    return Answer(int(text.split()[1]), text, body)


@contextmanager
def half_sent(url: str, number: int) -> Iterator[list[socket.socket]]:
    """So many connections, each with the beginning of a request."""
    with ExitStack() as stack:
        opened = []
        for _ in range(number):
            connection = stack.enter_context(connect(url))
            connection.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            opened.append(connection)
        yield opened
