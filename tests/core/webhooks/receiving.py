"""A real receiver that verifies what it gets with the official library."""

import http.server
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

Respond = Callable[[http.server.BaseHTTPRequestHandler], None]


@dataclass
class Receiving:
    """What a receiver got, and how it answers.

    Args:
        respond: answers a request; the default is 204.
        messages: identifier, and verified content.
    """

    port: int = 0
    secret: str = ""
    respond: Respond = lambda handler: answer(handler, 204)
    messages: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [identifier for identifier, _ in self.messages]

    @property
    def types(self) -> list[str]:
        return [content["type"] for _, content in self.messages]


def answer(handler: http.server.BaseHTTPRequestHandler, status: int, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def drip(handler: http.server.BaseHTTPRequestHandler) -> None:
    """A byte of a header now and then, for ever."""
    write_until_cut(handler, b"x", 0.02, before=b"HTTP/1.1 200 OK\r\nX-Slow: ")


def endless_informing(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Interim responses, for ever."""
    write_until_cut(handler, b"HTTP/1.1 100 Continue\r\n\r\n", 0)


def endless_body(handler: http.server.BaseHTTPRequestHandler) -> None:
    """A response that does not end."""
    handler.send_response(200)
    handler.end_headers()
    write_until_cut(handler, b"0" * 2**16, 0)


def endless_headers(handler: http.server.BaseHTTPRequestHandler) -> None:
    write_until_cut(handler, b"X-Many: 0\r\n", 0, before=b"HTTP/1.1 200 OK\r\n")


def write_until_cut(
    handler: http.server.BaseHTTPRequestHandler, piece: bytes, pause: float, before: bytes = b""
) -> None:
    try:
        handler.wfile.write(before)
        while True:
            handler.wfile.write(piece)
            handler.wfile.flush()
            time.sleep(pause)
    except OSError:
        handler.close_connection = True


@contextmanager
def receiver(certificate: tuple[Path, Path] | None = None) -> Iterator[Receiving]:
    """A receiver on this machine; with a certificate by HTTPS."""
    got = Receiving()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = dict(self.headers.items())
            got.bodies.append(body)
            got.headers.append(headers)
            if got.secret:
                content = Webhook(got.secret).verify(body, headers)
                got.messages.append((self.headers["webhook-id"], content))
            got.respond(self)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    got.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
