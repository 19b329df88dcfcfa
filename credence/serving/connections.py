"""Connections that cost nothing for long: uvicorn's, with bounds on time and number.

uvicorn gives up on a connection that is silent between two requests, and never on one whose request
does not come to its end, or whose client does not read. How long a body may take is the
application's to say (`app.http.middleware`).
"""

import asyncio
import math
import re
import resource
from collections.abc import Callable
from contextlib import suppress
from time import perf_counter
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.errors import problem_response
from core.exceptions import Unavailable
from credence.serving.crowd import Crowd
from credence.serving.protocol import BoundedProtocol

HEAD_SECONDS = 10.0  # for a request line and headers; nginx gives 60, Apache 20 to 40
TURN_SECONDS = 0.1  # in which the loop reads at least once, however busy it was
STALLED_SECONDS = 20.0  # without a byte of an answer being taken
RESERVED_FILES = 256  # descriptors that connections leave: database, models, uploads, libraries
PREDICTIONS = re.compile(r"/predict/?|/v2/models/.*/infer/?")
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


class Connection(BoundedProtocol):
    """One client. When there are too many, the one that has been idle for longest makes room."""

    crowd: Crowd  # of the server: `connections_of`
    on_refusal: Callable[[], None]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_counted = False
        self.idle_since = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered: none has come whole, or all have their answers."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > most_connections() and not self._make_room():
            transport.write(FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        self._leave_crowd()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.is_idle and self._head_timer is None:  # the first bytes after an answer
            self._await_head()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        self._leave_crowd()
        super().on_response_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if not PREDICTIONS.fullmatch(str(cycle.scope["path"])):
            super()._start_asgi_task(cycle, app)
        elif self.crowd.is_full and not self.flow.write_paused:
            with suppress(StopIteration):  # at once: a task would wait behind those of the others
                cycle.run_asgi(self._refuse).send(None)
        else:
            self.crowd.enter(perf_counter())
            self._is_counted = True
            super()._start_asgi_task(cycle, app)

    async def _refuse(self, scope: Any, receive: Any, send: Any) -> None:
        seconds = self.crowd.wait_seconds
        message = f"more requests than are answered in {seconds:.1f} s are here already"
        refusal = Unavailable(message, min(max(math.ceil(seconds), 1), 60))
        type(self).on_refusal()
        await problem_response(refusal, scope["path"])(scope, receive, send)

    def _leave_crowd(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self.crowd.leave(perf_counter())

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def _await_head(self) -> None:
        """What has come while the loop was busy is read first: then the timer is gone."""

        def look_again() -> None:
            self._head_timer = self._later(TURN_SECONDS, self.transport.abort)

        self._head_timer = self._later(HEAD_SECONDS, look_again)

    def _await_reader(self) -> None:
        """Whatever waits for its client to read is memory that others need."""
        waiting = self.transport.get_write_buffer_size()

        def look_again() -> None:
            if self.transport.get_write_buffer_size() < waiting:
                self._await_reader()
            else:
                self.transport.abort()

        self._write_timer = self._later(STALLED_SECONDS, look_again)

    def _later(self, seconds: float, act: Callable[[], object]) -> asyncio.TimerHandle:
        return self.loop.call_later(seconds, act)

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()

    def _make_room(self) -> bool:
        """Close the connection that has been idle for longest; False if all are busy."""
        others = (c for c in self.connections if isinstance(c, Connection) and c is not self)
        idle = min((c for c in others if c.is_idle), key=lambda c: c.idle_since, default=None)
        if idle is None:
            return False
        idle.transport.abort()
        return True


def connections_of(crowd: Crowd, on_refusal: Callable[[], None]) -> type[Connection]:
    """The connections of one server, which count their predictions together.

    `on_refusal` is called for each that is refused: the application does not see it.
    """
    own = {"crowd": crowd, "on_refusal": staticmethod(on_refusal)}
    return type("ServerConnection", (Connection,), own)


def most_connections() -> int:
    """As many as the process may have files open, but for those that it needs itself."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft - RESERVED_FILES, soft // 2)
