"""A server that does what a script says, one line per connection, and keeps what it was sent."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

DROP = ""  # the request is read, and the connection closed without an answer


@dataclass
class Scripted:
    """Where it listens, and the requests that have come: headers and body as they were."""

    url: str
    requests: list[tuple[str, bytes]] = field(default_factory=list)

    def header(self, name: str) -> list[str]:
        """A header of each request, empty where it is missing."""
        lines = [head.splitlines() for head, _ in self.requests]
        return [
            next((ln.partition(": ")[2] for ln in each if ln.lower().startswith(f"{name}:")), "")
            for each in lines
        ]


def answer(status: int, body: str = "{}", *headers: str) -> str:
    """A whole answer, after which the connection is closed."""
    head = [f"HTTP/1.1 {status} Said", "Content-Type: application/json", "Connection: close"]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", *headers, "", body])


@contextmanager
def scripted(*script: str) -> Iterator[Scripted]:
    """A server that plays the script; whoever comes after its end gets the last line."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=_play, args=(listener, server, script), daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def _play(listener: socket.socket, server: Scripted, script: Sequence[str]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            line = script[min(len(server.requests), len(script) - 1)]
            server.requests.append(_read(connection))
            connection.sendall(line.encode())


def _read(connection: socket.socket) -> tuple[str, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [h for h in head.decode().splitlines() if h.lower().startswith("content-length:")]
    wanted = int(lengths[0].partition(":")[2]) if lengths else 0
    while len(body) < wanted:
        body += connection.recv(65536)
    return head.decode(), body
