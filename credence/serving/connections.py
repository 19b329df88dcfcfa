"""uvicorn's connections with bounds on time, number and length of headers.

uvicorn closes a connection that is silent between two requests. It does not close one whose request
never ends or whose client does not read. It takes headers of any length. Its `limit_concurrency`
refuses new clients and keeps idle ones. `app.http.middleware` bounds the time for a body. The
overridden methods are not a public interface of uvicorn: its version is pinned, and
tests/credence/serving/test_concurrency_limit.py names them.
"""

import asyncio
import math
import resource
from collections.abc import Callable, Hashable
from contextlib import suppress
from time import perf_counter
from typing import Any

from uvicorn._types import HTTPScope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from app.access.session import presented_key
from app.errors import problem_response
from app.http.path_prefix import OWN
from core.exceptions import Unavailable
from credence.serving.concurrency_limit import ConcurrencyLimit
from credence.serving.lingering import LingeringTransport

MAX_HEAD_BYTES = 2**16  # more than nginx and Apache take
HEAD_SECONDS = 10.0  # for a request line and headers; nginx gives 60, Apache 20 to 40
TURN_SECONDS = 0.1  # a busy event loop reads at least once in this time
STALLED_SECONDS = 20.0  # the client has read no byte of a response in this time
RESERVED_FILES = 256  # descriptors for database, models, uploads, libraries
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


class Connection(HttpToolsProtocol):
    """The connection of one client. With too many, the one idle for longest is closed."""

    limit: ConcurrencyLimit  # shared by the connections of a server
    on_refusal: Callable[[], None]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        self._in_head = False
        self._in_request = False
        self._counted: tuple[Hashable, ...] = ()  # the caller whose prediction is in flight
        self.idle_since = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress: no complete one has come, or all are answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        lingering = LingeringTransport(transport, lambda: self._in_request)
        super().connection_made(lingering)  # type: ignore[arg-type]
        self._await_head()
        if len(self.connections) > most_connections() and not self._make_room():
            transport.write(FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return  # nobody waits for the rest of a request that was answered
        if self.is_idle and self._head_timer is None:  # the first bytes after a response
            self._await_head()
        continued = self._in_head
        super().data_received(data)
        if continued and self._in_head:  # even one header may come in many pieces
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The request line and headers are too long.")

    def on_message_begin(self) -> None:
        self._head_bytes, self._in_head, self._in_request = 0, True, True
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of the head. Trailers come after the key was checked, and are dropped."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        if sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            raise ValueError("too long")  # the parser stops, and uvicorn sends 400
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_request = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        self._leave()
        super().on_response_complete()
        if self._in_request and self.is_idle:  # its body is unread, or half of the next head came
            self._await_head()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not is_prediction(str(cycle.scope["path"])):
            super()._start_asgi_task(cycle, app)
        elif self.limit.is_reached(caller := caller_of(cycle.scope)) and not self.flow.write_paused:
            with suppress(StopIteration):  # now: a task would wait behind the others
                cycle.run_asgi(self._refuse).send(None)
        else:
            self.limit.enter(perf_counter(), caller)
            self._counted = (caller,)
            super()._start_asgi_task(cycle, app)

    async def _refuse(self, scope: Any, receive: Any, send: Any) -> None:
        seconds = self.limit.wait_seconds
        message = f"too many requests in flight: they take {seconds:.1f} s"
        refusal = Unavailable(message, min(max(math.ceil(seconds), 1), 60))
        type(self).on_refusal()
        await problem_response(refusal, scope)(scope, receive, send)

    def _leave(self) -> None:
        counted, self._counted = self._counted, ()
        for caller in counted:
            self.limit.leave(perf_counter(), caller)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _await_head(self) -> None:
        """Close the connection if no complete head comes in time; let a busy loop read it first."""

        def check() -> None:
            self._head_timer = self.loop.call_later(TURN_SECONDS, self.transport.abort)

        self._head_timer = self.loop.call_later(HEAD_SECONDS, check)

    def _await_reader(self) -> None:
        """Close the connection if its client does not read: the response occupies memory."""
        waiting = self.transport.get_write_buffer_size()

        def check() -> None:
            if self.transport.get_write_buffer_size() < waiting:
                self._await_reader()
            else:
                self.transport.abort()

        self._write_timer = self.loop.call_later(STALLED_SECONDS, check)

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()

    def _make_room(self) -> bool:
        """Close the connection that has been idle for longest. False if all are busy."""
        others = (c for c in self.connections if isinstance(c, Connection) and c is not self)
        idle = min((c for c in others if c.is_idle), key=lambda c: c.idle_since, default=None)
        if idle is None:
            return False
        idle.transport.abort()
        return True


def connections_of(limit: ConcurrencyLimit, on_refusal: Callable[[], None]) -> type[Connection]:
    """A protocol class for the connections of one server.

    Args:
        on_refusal: called for each refused prediction; the application does not see these.
    """
    own = {"limit": limit, "on_refusal": staticmethod(on_refusal)}
    return type("ServerConnection", (Connection,), own)


def is_prediction(path: str) -> bool:
    """Whether a path is that of a prediction, under any prefix that is no path of the service.

    Which prefix the request has is known later. No regular expression: in the time of one, which
    tries every place of `/v2/models/`, a path of 60 kB silenced the event loop.
    """
    path = path.removesuffix("/")
    own = path == "/predict" or (path.startswith("/v2/models/") and path.endswith("/infer"))
    if own or not path.endswith(("/predict", "/infer")):
        return own
    is_known = path.endswith("/predict") or "/v2/models/" in path
    return is_known and path.split("/", 2)[1] not in {"", *OWN}


def caller_of(scope: HTTPScope) -> Hashable:
    """Whose limit a request counts for: its key's, known or not, or else its address's.

    Unknown keys are refused at once, so that inventing them gives no room. Neither does writing
    `Bearer` in other letters: the key alone counts.
    """
    client = scope["client"]
    return presented_key(scope) or (None if client is None else client[0])


def most_connections() -> int:
    """The process's limit of open files, less those that it needs itself."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft - RESERVED_FILES, soft // 2)
