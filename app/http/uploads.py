"""Request bodies that are written to disk as they arrive."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from app.http.content_encoding import BodyWriter, body_writer
from core.process.disks import on_disk

WRITE_BYTES = 2**20  # bytes that are collected before a thread writes them
ENCODINGS = ("gzip", "x-gzip")


@dataclass(frozen=True)
class Upload:
    """A body in a file, inflated, and the SHA-256 of that file in hexadecimal."""

    path: Path
    sha256: str


@asynccontextmanager
async def received(
    request: Request, directory: Path, max_bytes: int, writers: CapacityLimiter
) -> AsyncIterator[Upload]:
    """The body in a temporary file in `directory`.

    Args:
        writers: limits the threads that write, and remove the file in the end.

    Raises:
        TooLarge: the body has, or inflates to, more than `max_bytes`.
        NotParseable: `Content-Encoding` is gzip and the body is not.
        UnsupportedFormat: `Content-Encoding` is another one.
        Unavailable: the disk is full.
    """
    limit = f"the body has, or inflates to, more than {max_bytes} bytes (CREDENCE_MAX_BODY_BYTES)"
    encoding = request.headers.get("content-encoding")
    folder = TemporaryDirectory(prefix="upload-", dir=directory)
    try:
        path = Path(folder.name) / "body"
        with on_disk("the upload"), path.open("wb") as file:
            writer = body_writer(file, max_bytes, limit, encoding, ENCODINGS)
            sha256 = await _receive(request, writer, writers)
        yield Upload(path, sha256)
    finally:  # in a thread: the kernel takes 60 ms to remove a file of 260 MB
        await to_thread.run_sync(folder.cleanup, limiter=writers)


async def _receive(request: Request, writer: BodyWriter, writers: CapacityLimiter) -> str:
    pending = bytearray()
    async for chunk in request.stream():
        pending += chunk
        if len(pending) >= WRITE_BYTES:
            await to_thread.run_sync(writer.write, bytes(pending), limiter=writers)
            pending.clear()
    await to_thread.run_sync(writer.write, bytes(pending), limiter=writers)
    return writer.finish()
