"""Bodies that are written to files."""

import asyncio
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from anyio import CapacityLimiter
from fastapi import Request
from starlette.types import Message

from app.http.uploads import received


def test_the_file_of_an_upload_is_removed_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop, which answers everybody, would wait 60 ms for a file of 260 MB."""
    remove, removing = TemporaryDirectory.cleanup, list[threading.Thread]()

    def noted(folder: TemporaryDirectory[str]) -> None:
        removing.append(threading.current_thread())
        remove(folder)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"a\n1\n", "more_body": False}

    async def upload() -> None:
        request = Request({"type": "http", "method": "POST", "headers": []}, receive)
        async with received(request, tmp_path, 100, CapacityLimiter(1)) as body:
            assert body.path.read_bytes() == b"a\n1\n"

    monkeypatch.setattr(TemporaryDirectory, "cleanup", noted)
    asyncio.run(upload())
    assert not list(tmp_path.iterdir())
    (thread,) = removing
    assert thread is not threading.current_thread()
