"""The short way of a prediction: what FastAPI's layers and the middleware do, in one function.

A request passes some fifteen layers, which take longer than decoding a row. Those that matter to a
prediction are here: request id, key, limits of the body, problem documents, the log line. What is
unusual takes the ordinary way, with the same answer: requests that are traced, and those whose
query, request id or names in the path must be refused.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from random import Random
from time import perf_counter

import structlog
from asgi_correlation_id import correlation_id
from fastapi import FastAPI, Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.access.key_ring import KeyRing
from app.dependencies import Services
from app.errors import is_expected, problem_response
from app.http.held_memory import release_memory
from app.http.middleware import (
    REQUEST_ID,
    STOPS,
    LimitedBody,
    OpenBodies,
    client_of,
    end_request,
    is_request_id,
    log,
    log_caller,
)
from core.exceptions import Unavailable
from core.settings import Settings
from core.telemetry.tracing import is_tracing

Endpoint = Callable[..., Awaitable[Response]]

PREDICT = "/predict"
INFER_NEWEST = "/v2/models/{model}/infer"
INFER_VERSION = "/v2/models/{model}/versions/{version}/infer"
INFER = re.compile(r"/v2/models/(?P<model>[^/]+)(?:/versions/(?P<version>[^/]+))?/infer/?")


def template_of(path: str) -> str:
    """The template of a prediction's path."""
    if path == PREDICT:
        return PREDICT
    return INFER_VERSION if "/versions/" in path else INFER_NEWEST


class Service(FastAPI):
    """The application; predictions go the short way once there is one.

    Everything goes through `outermost` first, if there is one, which calls `answer`.
    """

    direct: "DirectPath | None" = None
    outermost: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self.outermost or self.answer)(scope, receive, send)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whose path begins at `/`."""
        endpoint = None if self.direct is None else self.direct.endpoint_of(scope)
        if self.direct is None or endpoint is None:
            await super().__call__(scope, receive, send)
        else:
            scope["app"] = self
            await self.direct(endpoint, scope, receive, send)


class DirectPath:
    """Answers predictions without other layers.

    Args:
        predict, infer: the endpoints of `POST /predict` and of `POST /v2/models/…/infer`.
    """

    def __init__(
        self,
        settings: Settings,
        key_ring: KeyRing,
        open_bodies: OpenBodies,
        predict: Endpoint,
        infer: Endpoint,
    ) -> None:
        self._limits = settings.max_body_bytes, settings.body_seconds, open_bodies
        self._key_ring = key_ring
        self._predict, self._infer = predict, infer
        self._ids = Random()  # noqa: S311 - ids are no secrets; the kernel's numbers take longer

    def endpoint_of(
        self, scope: Scope
    ) -> Callable[[Request, Services], Awaitable[Response]] | None:
        """The endpoint of a prediction; None for requests that must go the ordinary way."""
        if scope["type"] != "http" or scope["method"] != "POST" or is_tracing():
            return None
        path = scope["path"]
        if path == PREDICT:
            return self._predict
        found = INFER.fullmatch(path) if path.startswith("/v2/") else None
        if found is None or scope["query_string"] or not path.isprintable():
            return None
        names = found.groupdict()

        def infer(request: Request, services: Services) -> Awaitable[Response]:
            return self._infer(request, services, **names)

        return infer

    async def __call__(
        self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send
    ) -> None:
        started = perf_counter()
        request_id = self._request_id(scope)
        correlation_id.set(request_id)
        structlog.contextvars.bind_contextvars(request_id=request_id, client=client_of(scope))
        response = await self._response(endpoint, scope, receive)
        response.raw_headers.append((REQUEST_ID.encode(), request_id.encode()))
        status = response.status_code
        try:
            await response(scope, receive, send)
        finally:
            release_memory(scope)
            end_request(scope, status, perf_counter() - started, template_of(scope["path"]))

    async def _response(self, endpoint: Endpoint, scope: Scope, receive: Receive) -> Response:
        """The answer, or the problem document of any exception."""
        try:
            caller = self._key_ring.admit(scope)
            scope.setdefault("state", {})["caller"] = caller
            log_caller(caller)
            body = LimitedBody(receive, *self._limits)
            request = Request(scope, body.receive)
            body.check_declared(request.headers.get("content-length", "0"))
            return await endpoint(request, scope["app"].state.services)
        except asyncio.CancelledError:  # by the server, at the end of a stop
            return problem_response(Unavailable(STOPS), scope)
        except Exception as error:
            if not is_expected(error):
                log.exception("unhandled exception", method=scope["method"], path=scope["path"])
            return problem_response(error, scope)

    def _request_id(self, scope: Scope) -> str:
        """The id in the headers, if it may go into logs, or a new one."""
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                given: str = value.decode("latin-1")
                if given and is_request_id(given):
                    return given
                break
        return f"{self._ids.getrandbits(128):032x}"
