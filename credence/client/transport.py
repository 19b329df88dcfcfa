"""Runs operations with httpx, in the calling thread or in an event loop."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, TypeVar

import httpx

from credence.client.operations import Async, Operation, Sleep, Sync
from credence.client.requests import Request

T = TypeVar("T")

CHUNK_BYTES = 2**18

Outcome = httpx.Response | Exception | None


class SyncTransport(Sync):
    """Runs operations with an `httpx.Client`."""

    _http: httpx.Client

    def run(self, operation: Operation[T]) -> T:
        try:
            step = next(operation)
            while True:
                step = _resume(operation, self._outcome(step))
        except StopIteration as end:
            return end.value
        finally:
            operation.close()

    def _outcome(self, step: Request[Any] | Sleep) -> Outcome:
        if isinstance(step, Sleep):
            time.sleep(step.seconds)
            return None
        try:
            return self._send(step)
        except Exception as error:
            return error

    def _send(self, request: Request[Any]) -> httpx.Response:
        with (
            _opened(request.body) as body,
            self._http.stream(**_arguments(request), content=body) as response,
        ):
            if request.save_as is None or response.is_error:
                response.read()
            else:
                with _completed(request.save_as) as file:
                    for chunk in response.iter_bytes():
                        file.write(chunk)
        return response


class AsyncTransport(Async):
    """Runs operations with an `httpx.AsyncClient`, in asyncio."""

    _http: httpx.AsyncClient

    async def run(self, operation: Operation[T]) -> T:
        try:
            step = next(operation)
            while True:
                step = _resume(operation, await self._outcome(step))
        except StopIteration as end:
            return end.value
        finally:
            operation.close()

    async def _outcome(self, step: Request[Any] | Sleep) -> Outcome:
        if isinstance(step, Sleep):
            await asyncio.sleep(step.seconds)
            return None
        try:
            return await self._send(step)
        except Exception as error:
            return error

    async def _send(self, request: Request[Any]) -> httpx.Response:
        with _opened(request.body) as body:
            content = body if isinstance(body, bytes) else _chunks(body)
            async with self._http.stream(**_arguments(request), content=content) as response:
                if request.save_as is None or response.is_error:
                    await response.aread()
                else:
                    with _completed(request.save_as) as file:
                        async for chunk in response.aiter_bytes():
                            file.write(chunk)
        return response


def _resume(operation: Operation[Any], outcome: Outcome) -> Request[Any] | Sleep:
    return operation.throw(outcome) if isinstance(outcome, Exception) else operation.send(outcome)


def _arguments(request: Request[Any]) -> dict[str, Any]:
    """httpx's arguments. With a file's length the service can refuse the file before it is sent."""
    headers = dict(request.headers)
    if isinstance(request.body, Path):
        headers["Content-Length"] = str(request.body.stat().st_size)
    return {
        "method": request.method,
        "url": request.path,
        "params": request.params,
        "headers": headers,
    }


def _opened(body: bytes | Path) -> AbstractContextManager[bytes | IO[bytes]]:
    """The body; a file is opened again for each try."""
    return nullcontext(body) if isinstance(body, bytes) else body.open("rb")


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
        yield chunk


@contextmanager
def _completed(path: Path) -> Iterator[IO[bytes]]:
    """A file that gets its name only when it is complete."""
    partial = path.with_name(f"{path.name}.part")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
