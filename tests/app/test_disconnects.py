"""A request whose client has gone is not computed; one that is answered leaves nothing behind."""

import asyncio
import http.client
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Message

from app import dependencies
from app.dependencies import or_disconnect
from tests.app.running import serving
from tests.waiting import wait_until


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


def test_what_a_stop_ends_is_a_503(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The body never comes, so that the server cancels the request at the end of its grace."""
    with serving(tmp_path, grace_seconds=1) as service:
        address = httpx.URL(service.url)
        upload = http.client.HTTPConnection(address.host, address.port, timeout=120)
        upload.putrequest("POST", "/datasets?name=slow")
        upload.putheader("Content-Type", "text/csv")
        upload.putheader("Content-Length", "100000")
        upload.endheaders(b"a,b\n1,2\n")
        wait_until(lambda: service.services.writers._bound.held == 1)
    answer = upload.getresponse()
    assert answer.status == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert b"the service stops" in answer.read()
    upload.close()
    assert not [record.msg for record in caplog.records if record.exc_info]
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [line["status"] for line in lines if line.get("path") == "/datasets"] == [503]
