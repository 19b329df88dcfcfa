"""Middleware of every request: its id, a log line, its key, and limits on its body."""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from time import perf_counter

import structlog
from asgi_correlation_id import CorrelationIdMiddleware, correlation_id
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.key_ring import KeyRing
from app.access.session import keep_own_cookies
from app.errors import CLIENT_CLOSED_REQUEST, TooSlow, problem_response
from app.http.held_memory import release_memory
from core.access.callers import Caller
from core.exceptions import CredenceError, TooLarge, Unavailable

MAX_REQUEST_ID = 128
MIN_BYTES_PER_SECOND = 8192  # of a body after its first seconds: a bad mobile connection
PROBES = ("/health", "/metrics")
KEEPS_VERSIONS = (  # paths of responses that show no change of versions
    *("/predict", "/v2", "/mcp", "/health", "/metrics", "/docs", "/openapi.json"),
    *("/ui/static", "/ui/plotly"),
)
REQUEST_ID = "X-Request-ID"
STOPS = "the service stops: send the request again"
log = structlog.stdlib.get_logger(__name__)
levels = logging.getLogger(__name__)  # tells without an event whether a line would be written


def middleware(
    max_body_bytes: int, body_seconds: float, key_ring: KeyRing, open_bodies: "OpenBodies"
) -> list[Middleware]:
    """The middleware, outermost first."""
    return [
        Middleware(CorrelationIdMiddleware, header_name=REQUEST_ID, validator=is_request_id),
        Middleware(log_requests),
        Middleware(drop_other_cookies),
        Middleware(check_keys, key_ring=key_ring),
        Middleware(answer_head_as_get),
        Middleware(clear_versions),
        Middleware(
            limit_bodies,
            max_body_bytes=max_body_bytes,
            body_seconds=body_seconds,
            open_bodies=open_bodies,
        ),
    ]


def is_request_id(value: str) -> bool:
    """Whether a value may go into headers and logs as it is: printable ASCII of limited length."""
    return len(value) <= MAX_REQUEST_ID and value.isascii() and value.isprintable()


def log_requests(app: ASGIApp) -> ASGIApp:
    """Log one line per request. An unhandled exception becomes a 500 without its traceback."""

    async def logged(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        # No unbind is needed: every request has its own task and so its own context.
        structlog.contextvars.bind_contextvars(
            request_id=correlation_id.get(), client=client_of(scope)
        )
        started, status = perf_counter(), 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await app(scope, receive, note_status)
        except asyncio.CancelledError:  # by the server, at the end of a stop
            if not status:
                await stopped_response(scope)(scope, receive, note_status)
        except Exception as error:
            log.exception("unhandled exception", method=scope["method"], path=scope["path"])
            if status:  # the response has started: only a closed connection shows the error
                raise
            await problem_response(error, scope)(scope, receive, note_status)
        finally:
            release_memory(scope)
            end_request(scope, status, perf_counter() - started)

    return logged


def drop_other_cookies(app: ASGIApp) -> ASGIApp:
    """Keep the cookies that this service sets: every route parses all that are there."""

    async def kept(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            keep_own_cookies(scope)
        await app(scope, receive, send)

    return kept


def stopped_response(scope: Scope) -> ASGIApp:
    """The answer to a request that the server ends because it stops.

    Raised further, the cancellation would be a 500, and a traceback of each request in the log.
    """
    return problem_response(Unavailable(STOPS), scope)


def end_request(scope: Scope, status: int, seconds: float, route: str | None = None) -> None:
    """Count and log a request. Probes, which come every few seconds, are only for debugging.

    Args:
        status: 0 if the client went before there was one.
        route: the template of the path, if it is known.
    """
    state, path = scope["app"].state, scope["path"]
    template = route or state.templates.template(path)
    state.services.metrics.count_request(template, scope["method"], status or CLIENT_CLOSED_REQUEST)
    is_probe = status == 200 and scope["path"].startswith(PROBES)
    if levels.isEnabledFor(logging.DEBUG if is_probe else logging.INFO):
        (log.debug if is_probe else log.info)(
            "request",
            method=scope["method"],
            path=scope["path"],
            status=status,
            duration_ms=round(1000 * seconds, 2),
        )


def client_of(scope: Scope) -> str:
    """The client's address, as a trusted proxy gives it; `unknown` if it gives no address."""
    client = scope.get("client")
    return _address(client[0]) if client else "unknown"


@lru_cache(maxsize=1024)
def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return "unknown"


def log_caller(caller: Caller) -> None:
    """Add key and owner to all later lines of the request."""
    known = {"key": caller.key, "owner": caller.owner or None}
    structlog.contextvars.bind_contextvars(**{name: v for name, v in known.items() if v})


def check_keys(app: ASGIApp, key_ring: KeyRing) -> ASGIApp:
    """Refuse requests of a wrong host or without a valid key before their body is read.

    This is middleware, so that no route can be added without it.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # no route has one; a new one must check the key itself
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            try:
                caller = key_ring.admit(scope)
            except CredenceError as error:
                await problem_response(error, scope)(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
            log_caller(caller)
        await app(scope, receive, send)

    return checked


def answer_head_as_get(app: ASGIApp) -> ASGIApp:
    """Handle HEAD as GET. The server drops the body, because its own scope still says HEAD."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await app(scope, receive, send)

    return answered


def clear_versions(app: ASGIApp) -> ASGIApp:
    """Clear the cache of `VersionLookup` before every response that may show a change of versions.

    After a client moved an alias here, or saw here that a job succeeded, its next prediction must
    use the new version.
    """

    async def clearing(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(KEEPS_VERSIONS):
            await app(scope, receive, send)
            return

        async def clear_and_send(message: Message) -> None:
            scope["app"].state.services.predictor.versions.clear()
            await send(message)

        await app(scope, receive, clear_and_send)

    return clearing


def limit_bodies(
    app: ASGIApp, max_body_bytes: int, body_seconds: float, open_bodies: "OpenBodies"
) -> ASGIApp:
    """Refuse bodies that are too large or too slow, whatever Content-Length says."""

    async def limited(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        body = LimitedBody(receive, max_body_bytes, body_seconds, open_bodies)
        try:
            body.check_declared(Headers(scope=scope).get("content-length", "0"))
        except TooLarge as error:
            await problem_response(error, scope)(scope, receive, send)
            return
        await app(scope, body.receive, send)

    return limited


class OpenBodies:
    """The bodies that are being received, which end early when the service stops."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Timeout] = set()
        self.are_closed = False

    def close(self) -> None:
        """Let all of them, and all later ones, raise `Unavailable`."""
        self.are_closed = True
        for timeout in self._waiting:
            timeout.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """A block that raises `TimeoutError` after so long, or at `close`."""
        async with asyncio.timeout(0 if self.are_closed else seconds) as timeout:
            self._waiting.add(timeout)
            try:
                yield
            finally:
                self._waiting.discard(timeout)


class LimitedBody:
    """Receives the messages of a request, of which the body has limited size and time.

    A slow body would occupy a temporary file or memory without limit. A longer body gets more time.
    """

    def __init__(
        self, receive: Receive, max_bytes: int, seconds: float, open_bodies: OpenBodies
    ) -> None:
        self._receive = receive
        self._open_bodies = open_bodies
        self._max_bytes, self._seconds = max_bytes, seconds
        self._num_bytes, self._more, self._begun = 0, True, perf_counter()

    def check_declared(self, content_length: str) -> None:
        """Raise `TooLarge` if the header says so."""
        if content_length.isdigit() and int(content_length) > self._max_bytes:
            raise self._too_large()

    async def receive(self) -> Message:
        """The next message. Raises `TooLarge`, `TooSlow`, or `Unavailable` at a stop."""
        if not self._more:  # after the body only a disconnect can come
            return await self._receive()
        allowed = self._seconds + self._num_bytes / MIN_BYTES_PER_SECOND
        try:
            async with self._open_bodies.within(self._begun + allowed - perf_counter()):
                message = await self._receive()
        except TimeoutError:
            if self._open_bodies.are_closed:
                raise Unavailable(STOPS) from None
            raise TooSlow(
                f"only {self._num_bytes} bytes of the body arrived in time: it has "
                f"{self._seconds:g} s (CREDENCE_BODY_SECONDS), and a second for each "
                f"{MIN_BYTES_PER_SECOND} bytes"
            ) from None
        self._num_bytes += len(message.get("body", b""))
        self._more = message.get("more_body", False)
        if self._num_bytes > self._max_bytes:
            raise self._too_large()
        return message

    def _too_large(self) -> TooLarge:
        limit = f"{self._max_bytes} bytes (CREDENCE_MAX_BODY_BYTES)"
        return TooLarge(f"the body is larger than {limit}")
