"""Routes that are plain functions run in threads, of which each caller has a few.

FastAPI has 40 threads for them, which all callers share. Twenty connections of one caller used all
of these, and their Python left the event loop and the engine no time.

A client that leaves before its turn is forgotten, unless its request has a body: the route reads
the body after its turn has come, and a watcher of the connection would read it before.
"""

import inspect
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Request

from app.dependencies import Services, caller_of, get_services, or_disconnect

MAX_REQUESTS = 512
THREADS = 3  # of a caller: a page and what it loads


async def take_turn(
    request: Request, services: Annotated[Services, Depends(get_services)]
) -> AsyncIterator[None]:
    """Wait for one of the caller's threads while the route's function is a plain one.

    Raises:
        ClientDisconnect: the client has left.
        Unavailable: too many requests wait.
    """
    if not _is_plain(request) or not hasattr(request.state, "caller"):  # who signs in has no key
        yield
        return
    with services.plain.entered(caller_of(request).share) as threads:
        borrower = object()
        turn = threads.acquire_on_behalf_of(borrower)
        await (turn if _has_body(request) else or_disconnect(request, turn))
        try:
            yield
        finally:
            threads.release_on_behalf_of(borrower)


def _has_body(request: Request) -> bool:
    headers = request.headers
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _is_plain(request: Request) -> bool:
    """Whether a thread runs the route's function. Event streams are asynchronous generators."""
    function = getattr(request.scope.get("route"), "endpoint", None)
    return not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function))
