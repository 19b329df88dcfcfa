"""An HTTP server for metrics alone: one thread, few connections, each for a few seconds.

Connections wait on one event loop, so that a half-sent request costs no thread. If there are too
many, the oldest is closed. A client that sends its request at once, as Prometheus does, is the
newest, and gets its answer beside any number of others.
"""

import asyncio
import socket
import threading

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from core.access.hosts import AllowedHosts
from core.exceptions import NotParseable, WrongHost

MAX_CONNECTIONS = 64  # Prometheus needs one
BACKLOG = 16  # connections that are accepted in one turn of the event loop
SECONDS = 5.0  # for a request and its answer
MAX_HEAD_BYTES = 2**13
TEXT = "text/plain; charset=utf-8"


class MetricsServer:
    """Serves a registry from a thread of its own, until the process ends.

    Args:
        listener: an open socket.
        hosts: the names by which clients may call it.
    """

    def __init__(
        self, listener: socket.socket, registry: CollectorRegistry, hosts: AllowedHosts
    ) -> None:
        self.port = int(listener.getsockname()[1])
        self._listener = listener
        self._registry = registry
        self._hosts = hosts
        self._open: dict[asyncio.StreamWriter, None] = {}  # the oldest first

    def start(self) -> None:
        """Start the thread."""
        serve = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)
        serve.name = "metrics"
        serve.start()

    async def _serve(self) -> None:
        server = await asyncio.start_server(
            self._connected, sock=self._listener, limit=MAX_HEAD_BYTES, backlog=BACKLOG
        )
        await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, and close the connection."""
        if len(self._open) >= MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        writer.transport.set_write_buffer_limits(0)  # `drain` waits until all is sent
        try:
            async with asyncio.timeout(SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head, writer.get_extra_info("sockname")[0]))
                await writer.drain()
            writer.close()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            self._open.pop(writer, None)

    def _answer(self, head: bytes, local: str) -> bytes:
        request, *fields = head.split(b"\r\n")
        pairs = [field.partition(b":") for field in fields]
        hosts = [value.strip() for name, _, value in pairs if name.strip().lower() == b"host"]
        try:
            self._hosts.check(hosts, local, is_probe=True)
        except NotParseable as error:
            return _response("400 Bad Request", f"{error}\n".encode())
        except WrongHost as error:
            return _response("421 Misdirected Request", f"{error}\n".encode())
        if request.split(b"?")[0].split(b" ")[:2] not in ([b"GET", b"/metrics"], [b"GET", b"/"]):
            return _response("404 Not Found", b"only GET /metrics is here\n")
        return _response("200 OK", generate_latest(self._registry), CONTENT_TYPE_LATEST)


def _response(status: str, body: bytes, content_type: str = TEXT) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
