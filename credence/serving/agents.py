"""The tools for agents at `/mcp`, over HTTP, under the caller's key.

A tool sends HTTP requests to the application that it is part of, without a network, with the key
of the caller. So keys, scopes, owners, limits, audit and messages are those of the routes.

Each request stands alone (stateless, JSON), so that any replica may answer it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
from asgi_correlation_id import correlation_id
from fastapi import FastAPI
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import problem_response
from app.http.middleware import REQUEST_ID, client_of
from app.http.path_prefix import prefix
from core.exceptions import TooLarge, Unavailable
from credence.client import AsyncClient

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

PATH = "/mcp"
MAX_CALLS = 16  # of one caller at a time: those that wait for jobs ask the database again and again
RETRIES = 2  # the agent waits meanwhile
MAX_BODY_BYTES = 2**22  # of a call with its rows
MAX_CONTAINERS = 2**15  # objects and lists of a call, counted before they are made


def mount(app: FastAPI) -> FastAPI:
    """The application, which now also answers at `/mcp`."""
    app.router.routes.append(Route(PATH, Agents(app), methods=["POST"]))
    app.state.templates.add(PATH)
    return app


class Agents:
    """Answers one request of the protocol."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._calls: Counter[str] = Counter()
        self._server: Server[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = scope["state"]["caller"].share or client_of(scope)
        if self._calls[caller] >= MAX_CALLS:
            error = Unavailable(f"{MAX_CALLS} calls of yours are not answered yet: wait for them")
            await problem_response(error, scope)(scope, receive, send)
            return
        self._calls[caller] += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._calls[caller] -= 1
            if not self._calls[caller]:
                del self._calls[caller]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._server is None:
            self._server = await asyncio.to_thread(_load_server, self._app)
        from mcp.server.streamable_http_manager import (  # noqa: PLC0415
            StreamableHTTPSessionManager,
        )

        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        try:
            async with manager.run():  # it keeps nothing between requests
                await manager.handle_request(scope, _counting(receive), send)
        except ExceptionGroup as group:  # of its tasks: a body that is too slow, a client that left
            raise group.exceptions[0] from None


def _counting(receive: Receive) -> Receive:
    """The same body; `TooLarge` as soon as it has too many objects and lists."""
    count = 0

    async def counted() -> Message:
        nonlocal count
        message = await receive()
        body = message.get("body", b"")
        count += body.count(b"{") + body.count(b"[")
        if count > MAX_CONTAINERS:
            raise TooLarge(
                f"the call has more than {MAX_CONTAINERS} objects and lists: upload the rows to "
                "POST /datasets"
            )
        return message

    return counted


def _load_server(app: FastAPI) -> "Server[Any]":
    """The server of the tools. Loading the SDK takes seconds and 40 MB: at the first call."""
    from credence.agents.server import TOOLS, make_server  # noqa: PLC0415

    @asynccontextmanager
    async def connect(context: Any) -> AsyncIterator[AsyncClient]:
        async with CallerClient(app, context.request) as client:
            yield client

    logging.getLogger("mcp").setLevel(logging.WARNING)  # a line per request is enough
    return make_server(TOOLS, connect)


class CallerClient(AsyncClient):
    """Sends requests to the application in this process, as the caller of one request."""

    def __init__(self, app: ASGIApp, request: Request) -> None:
        self._request = request
        self._app = app
        super().__init__(
            f"{request.url.scheme}://{request.url.netloc}{prefix()}",
            retries=RETRIES,
            progress=False,
        )

    def _open(self, **options: Any) -> None:
        """The key is the caller's, and never `CREDENCE_KEY` of the service's environment."""
        given = self._request.headers
        names = ("host", "authorization")
        headers = {name: given[name] for name in names if name in given}
        headers[REQUEST_ID] = str(correlation_id.get())
        transport = httpx.ASGITransport(self._within, raise_app_exceptions=False)
        options |= {"base_url": "http://credence", "headers": headers}
        self._http = httpx.AsyncClient(**options, transport=transport)

    async def _within(self, scope: Any, receive: Receive, send: Send) -> None:
        """Pass a request on with the addresses of the caller's."""
        outer = self._request.scope
        same = {name: outer.get(name) for name in ("client", "server", "scheme")}
        await self._app({**scope, **same}, receive, send)
