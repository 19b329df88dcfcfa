"""A small HTTP/1.1 client, so that the generator leaves the processor to the servers.

A request takes it about 60 µs; httpx takes 1 ms.
"""

import asyncio
from dataclasses import dataclass
from typing import cast

import httptools

MAX_CONNECTIONS = 256  # more requests wait in the client; this counts as latency


@dataclass(frozen=True)
class Response:
    status: int
    body: bytes
    retry_after: int | None = None


def request_bytes(path: str, body: bytes) -> bytes:
    """A POST request with head and body."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Accept: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Connection(asyncio.Protocol):
    """A connection for one request at a time."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._retry_after: int | None = None
        self._response: asyncio.Future[Response] | None = None
        self._transport: asyncio.Transport | None = None
        self._gone = asyncio.Event()
        self.reusable = True

    async def post(self, request: bytes) -> Response:
        assert self._transport is not None
        self._parser = httptools.HttpResponseParser(self)
        self._parts, self._retry_after = [], None
        self._response = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._response

    def close(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    async def wait_closed(self) -> None:
        await self._gone.wait()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's class is not a subclass

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        self._gone.set()
        self._fail("connection lost")

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._fail("not HTTP")
            self.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self._retry_after = int(value)

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self.reusable = self.reusable and self._parser.should_keep_alive()
        if self._response is not None and not self._response.done():
            status, body = self._parser.get_status_code(), b"".join(self._parts)
            response = Response(status, body, self._retry_after)
            self._response.set_result(response)

    def _fail(self, reason: str) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(ConnectionError(reason))


class Client:
    """Connections to one local port, opened when needed."""

    def __init__(self, port: int, max_connections: int = MAX_CONNECTIONS) -> None:
        self._port = port
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._free = asyncio.Semaphore(max_connections)

    async def post(self, request: bytes) -> Response:
        """Send a request, and wait for its response.

        Raises:
            OSError: there is no connection, or it ends before the response.
        """
        async with self._free:
            connection = await self._connect()
            try:
                response = await connection.post(request)
            except BaseException:
                connection.close()  # a late response must not become the next request's
                raise
            finally:
                self._put_back(connection)
            return response

    async def close(self) -> None:
        connections = list(self._all)
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))

    async def _connect(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
            self._all.discard(connection)
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(_Connection, "127.0.0.1", self._port)
        self._all.add(connection)
        return connection

    def _put_back(self, connection: _Connection) -> None:
        if connection.reusable:
            self._idle.append(connection)
        else:
            self._all.discard(connection)
            connection.close()
