"""A request whose client has gone is not computed; one that is answered leaves nothing behind."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable

import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app import dependencies
from app.dependencies import or_disconnect


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Watch every request from its first moment."""
    monkeypatch.setattr(dependencies, "PATIENCE_SECONDS", 0.0)


def request_from(receive: Callable[[], Awaitable[Message]]) -> Request:
    return Request({"type": "http", "headers": []}, receive)


def test_work_for_a_client_that_has_gone_is_cancelled() -> None:
    stopped = asyncio.Event()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    with pytest.raises(ClientDisconnect):
        asyncio.run(or_disconnect(request_from(receive), work()))
    assert stopped.is_set()


def test_an_answered_request_is_freed_without_a_collection() -> None:
    """Requests in cycles, their bodies included, would stay until the garbage collector came."""

    async def answered() -> "weakref.ref[Request]":
        watching = asyncio.Event()

        async def receive() -> Message:
            watching.set()
            await asyncio.Event().wait()
            raise AssertionError

        request = request_from(receive)
        assert await or_disconnect(request, watching.wait())
        return weakref.ref(request)

    async def run() -> bool:
        freed = await asyncio.create_task(answered())
        for _ in range(3):  # the watcher's task ends
            await asyncio.sleep(0)
        return freed() is None

    gc.disable()
    try:
        assert asyncio.run(run())
    finally:
        gc.enable()
