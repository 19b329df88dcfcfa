"""What happens around every request: an id, a line in the log, a key, a limit on its body."""

import asyncio
from time import perf_counter

import structlog
from asgi_correlation_id import CorrelationIdMiddleware, correlation_id
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.access.key_ring import KeyRing
from app.access.session import ForeignOrigin
from app.errors import Forbidden, TooSlow, Unauthorized, problem_response
from core.exceptions import LimitReached, TooLarge

MAX_REQUEST_ID = 128
MIN_BYTES_PER_SECOND = 8192  # of a body, once its first seconds are over: a bad mobile connection
PROBES = ("/health", "/metrics")
KEEPS_VERSIONS = (
    *("/predict", "/v2", "/health", "/metrics", "/docs", "/openapi.json"),
    *("/ui/static", "/ui/plotly"),
)
log = structlog.stdlib.get_logger(__name__)


def middleware(max_body_bytes: int, body_seconds: float, key_ring: KeyRing) -> list[Middleware]:
    """The stack, outermost first."""
    return [
        Middleware(CorrelationIdMiddleware, header_name="X-Request-ID", validator=is_request_id),
        Middleware(RequestLogMiddleware),
        Middleware(KeyMiddleware, key_ring=key_ring),
        Middleware(HeadMiddleware),
        Middleware(ForgetVersionsMiddleware),
        Middleware(BodyLimitMiddleware, max_body_bytes=max_body_bytes, body_seconds=body_seconds),
    ]


def is_request_id(value: str) -> bool:
    """Printable ASCII of a sane length: it goes into headers and logs as it is."""
    return len(value) <= MAX_REQUEST_ID and value.isascii() and value.isprintable()


class HeadMiddleware:
    """HEAD is answered as GET is; the server leaves the body out, as its scope says HEAD still."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self.app(scope, receive, send)


class RequestLogMiddleware:
    """One line per request; an exception that nobody handled becomes a 500 without a trace."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Never unbound: every request has a task, and with it a context, of its own.
        structlog.contextvars.bind_contextvars(request_id=correlation_id.get())
        await self._logged(scope, receive, send)

    async def _logged(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        status = 0

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, note_status)
        except Exception as error:
            log.exception("unhandled exception", method=scope["method"], path=scope["path"])
            if status:  # half an answer is out: only cutting the connection tells the client
                raise
            await problem_response(error, scope)(scope, receive, note_status)
        finally:
            milliseconds = round(1000 * (perf_counter() - started), 2)
            told = log.debug if _is_probe(scope, status) else log.info
            told(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                duration_ms=milliseconds,
            )


class KeyMiddleware:
    """Asks for a key before anything of a request is read. In front of all routes, so that none can
    be added without it.
    """

    def __init__(self, app: ASGIApp, key_ring: KeyRing) -> None:
        self.app = app
        self.key_ring = key_ring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # there are none; one that is added must ask for a key
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            try:
                caller = self.key_ring.admit(scope)
            except (Unauthorized, Forbidden, ForeignOrigin, LimitReached) as error:
                await problem_response(error, scope)(scope, receive, send)
                return
            scope.setdefault("state", {})["caller"] = caller
            if caller.key is not None:
                structlog.contextvars.bind_contextvars(key=caller.key)
        await self.app(scope, receive, send)


def _is_probe(scope: Scope, status: int) -> bool:
    """What asks every few seconds, and was answered well: news is when it was not."""
    return status == 200 and scope["path"].startswith(PROBES)


class ForgetVersionsMiddleware:
    """Versions and aliases are looked up anew after any answer that may tell of a change in them.

    Predictions remember for a moment what a name means. Whoever moved an alias here, or has seen
    here that a job is done, must find it in the next prediction.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"].startswith(KEEPS_VERSIONS):
            await self.app(scope, receive, send)
            return

        async def forget_and_send(message: Message) -> None:
            scope["app"].state.services.predictor.versions.forget()
            await send(message)

        await self.app(scope, receive, forget_and_send)


class BodyLimitMiddleware:
    """Counts the bytes that arrive, whatever Content-Length says; refuses early where it can.

    A body has a time, and more of it the longer it is: one that trickles would hold its temporary
    file, or what is in memory of it, as long as its client likes.
    """

    def __init__(self, app: ASGIApp, max_body_bytes: int, body_seconds: float) -> None:
        self.app = app
        self.max_body_bytes = max_body_bytes
        self.body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdigit() and int(declared) > self.max_body_bytes:
            await problem_response(self._too_large(), scope)(scope, receive, send)
            return
        num_bytes, more, begun = 0, True, perf_counter()

        async def count() -> Message:
            nonlocal num_bytes, more
            if not more:  # whoever asks now waits for the client to go away
                return await receive()
            left = begun + self.body_seconds + num_bytes / MIN_BYTES_PER_SECOND - perf_counter()
            try:
                async with asyncio.timeout(left):
                    message = await receive()
            except TimeoutError:
                raise self._too_slow(num_bytes) from None
            num_bytes += len(message.get("body", b""))
            more = message.get("more_body", False)
            if num_bytes > self.max_body_bytes:
                raise self._too_large()
            return message

        await self.app(scope, count, send)

    def _too_slow(self, num_bytes: int) -> TooSlow:
        return TooSlow(
            f"{num_bytes} bytes of the body have come: it has {self.body_seconds:g} s "
            f"(CREDENCE_BODY_SECONDS), and a second more for each {MIN_BYTES_PER_SECOND} bytes"
        )

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the body is larger than {self.max_body_bytes} bytes (CREDENCE_MAX_BODY_BYTES)"
        )
