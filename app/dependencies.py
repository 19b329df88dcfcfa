"""FastAPI dependencies: the process's services, the caller, and parameters of several routes."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, TypeVar, cast

from asgi_correlation_id import correlation_id
from fastapi import Depends, Query, Request, Response, params
from fastapi.dependencies.utils import get_flat_params
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from app.health import Health
from app.http.caller_threads import CallerThreads
from app.http.event_streams import EventStreams
from app.http.held_memory import held_by
from app.http.large_work import LargeWork
from app.http.middleware import client_of
from app.metrics.metrics import Metrics
from app.metrics.scrapes import Scrapes
from app.rendered_cards import RenderedCards
from app.schemas.common import Limit
from app.serving.predictor import Predictor
from core.access.callers import Caller
from core.context import Context
from core.exceptions import Invalid, NotFound
from core.validation import MAX_ERRORS
from models.messages import nearest_name

DEFAULT_LIMIT = 50
PATIENCE_SECONDS = 0.1  # a watcher is a task, which takes longer than decoding a row

T = TypeVar("T")


@dataclass(frozen=True)
class Services:
    """Everything that lives as long as the application.

    `context` is not restricted: routes use `ContextDep`, which is restricted to their caller.
    """

    context: Context
    metrics: Metrics
    scrapes: Scrapes
    predictor: Predictor
    health: Health
    event_streams: EventStreams
    cards: RenderedCards
    writers: CallerThreads  # of uploads, so that a slow disk blocks no other requests
    readers: CallerThreads  # of requests that read sources
    plain: CallerThreads  # of routes that are plain functions (`app.plain_routes`)
    large_work: LargeWork


async def get_services(request: Request) -> Services:
    """The services that `app.main` opened at the start."""
    return cast(Services, request.app.state.services)


def caller_of(request: Request) -> Caller:
    """The caller of a request, which `app.http.middleware.check_keys` has identified."""
    caller: Caller = request.state.caller
    operation = getattr(request.state, "operation", None)

    def hold(num_bytes: int) -> None:
        held_by(request).stored(num_bytes)

    return caller.with_request(correlation_id.get(), operation, client_of(request.scope), hold)


async def get_context(
    request: Request, services: Annotated[Services, Depends(get_services)]
) -> Context:
    """The services of `core`, restricted to what the caller may see."""
    return services.context.for_caller(caller_of(request))


ServicesDep = Annotated[Services, Depends(get_services)]
ContextDep = Annotated[Context, Depends(get_context)]


@dataclass(frozen=True)
class Paging:
    """Which page of a list."""

    limit: Annotated[Limit, Query()] = DEFAULT_LIMIT
    cursor: Annotated[str | None, Query(max_length=512)] = None


PagingDep = Annotated[Paging, Depends()]


async def check_parameters(request: Request) -> None:
    """Check path and query parameters for every route.

    Raises:
        NotFound: a path parameter has control characters, which PostgreSQL does not accept.
        Invalid: a query parameter is unknown or given twice.
    """
    for kind, value in request.path_params.items():
        if not str(value).isprintable():
            raise NotFound(kind, value)
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    if "parameters" in (route.openapi_extra or {}):  # the route reads and checks them itself
        return
    fields = get_flat_params(route.dependant)
    known = {field.alias for field in fields if isinstance(field.field_info, params.Query)}
    unknown = islice((name for name in request.query_params if name not in known), MAX_ERRORS)
    errors = [(name, _unknown(name, known)) for name in unknown]
    names = [name for name, _ in request.query_params.multi_items()]
    errors += [(name, "is given twice") for name in known if names.count(name) > 1]
    if errors:
        raise Invalid(errors)


async def or_disconnect(request: Request, work: Awaitable[T]) -> T:
    """The result of `work`. It is cancelled when the client disconnects.

    Read the request's body before: this function receives and drops all further messages. It
    begins to do so after `PATIENCE_SECONDS`, because most work has ended by then.

    Raises:
        ClientDisconnect: the client has disconnected.
    """
    client = _Client(request)
    timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, client.watch)
    try:
        return await work
    except asyncio.CancelledError:
        if client.is_gone and client.work.uncancel() == 0:  # by nobody else
            raise ClientDisconnect from None
        raise
    finally:
        timer.cancel()
        client.leave()


class _Client:
    """Cancels the present task when the client of a request disconnects."""

    def __init__(self, request: Request) -> None:
        work = asyncio.current_task()
        assert work is not None
        self.work = work
        self.is_gone = False
        self._request = request
        self._watcher: asyncio.Task[None] | None = None

    def watch(self) -> None:
        self._watcher = asyncio.create_task(self._cancel_when_gone())

    def leave(self) -> None:
        """Stop watching. The watcher's exception refers to this object: no cycle may remain, which
        would keep the request, its body included, until a garbage collection.
        """
        if self._watcher is not None:
            self._watcher.cancel()
            self._watcher = None

    async def _cancel_when_gone(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self.is_gone = True
        self.work.cancel()


class DirectRoute(APIRoute):
    """A route whose endpoint takes the request and the services, and returns a response.

    FastAPI documents the route but does not resolve its dependencies: FastAPI's exit stacks and
    exception wrappers took a tenth of the event loop's time. Exception handlers still work.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] not in (self.methods or ()):  # FastAPI's 405
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        await check_parameters(request)
        response: Response = await self.endpoint(request, await get_services(request))
        await response(scope, receive, send)


def _unknown(name: str, known: set[str]) -> str:
    near = nearest_name(name, known)
    meant = "" if near is None else f" {name!r}: did you mean {near!r}?"
    return f"unknown parameter{meant}; known are {', '.join(sorted(known)) or 'none'}"
