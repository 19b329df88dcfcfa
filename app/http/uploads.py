"""Request bodies that go to disk as they arrive, inflated on the way if they are compressed."""

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from core.exceptions import NotParseable, TooLarge, UnsupportedFormat
from core.process.disks import on_disk

WRITE_BYTES = 2**20  # one hop to a thread for about so much
INFLATE_BYTES = 2**14  # inflated together
GZIP = 16 + zlib.MAX_WBITS  # zlib's way to ask for a gzip header and checksum


@asynccontextmanager
async def received(
    request: Request, directory: Path, max_bytes: int, writers: CapacityLimiter
) -> AsyncIterator[Path]:
    """The body in a temporary file in `directory`, written by some of the `writers`' threads.

    Raises:
        TooLarge: if it has, or inflates to, more than `max_bytes`.
        NotParseable: if it is said to be gzip and is not.
        UnsupportedFormat: if it is encoded in another way.
        Unavailable: if the disk is full.
    """
    with TemporaryDirectory(prefix="upload-", dir=directory) as folder:
        path = Path(folder) / "body"
        with on_disk("the upload"), path.open("wb") as file:
            await _receive(request, _sink(request, file, max_bytes), writers)
        yield path


async def _receive(request: Request, sink: "Sink", writers: CapacityLimiter) -> None:
    pending = bytearray()
    async for chunk in request.stream():
        pending += chunk
        if len(pending) >= WRITE_BYTES:
            await to_thread.run_sync(sink.write, bytes(pending), limiter=writers)
            pending.clear()
    await to_thread.run_sync(sink.write, bytes(pending), limiter=writers)
    sink.finish()


def _sink(request: Request, file: BinaryIO, max_bytes: int) -> "Sink":
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding in ("gzip", "x-gzip"):
        return GzipSink(file, max_bytes)
    if encoding == "identity":
        return Sink(file, max_bytes)
    raise UnsupportedFormat(f"Content-Encoding may be gzip or identity, not {encoding[:40]!r}")


class Sink:
    """Writes at most `max_bytes` to a file."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._room = max_bytes

    def write(self, data: bytes) -> None:
        """Raise `TooLarge` before there would be more bytes than the limit."""
        self._room -= len(data)
        if self._room < 0:
            raise TooLarge(
                f"the body has, or inflates to, more than {self._max_bytes} bytes "
                "(CREDENCE_MAX_BODY_BYTES)"
            )
        self._file.write(data)

    def finish(self) -> None:
        """Check that nothing is missing at the end."""


class GzipSink(Sink):
    """Inflates piece by piece: a small body that inflates to a huge one is never in memory."""

    def __init__(self, file: BinaryIO, max_bytes: int) -> None:
        super().__init__(file, max_bytes)
        self._inflater = zlib.decompressobj(GZIP)

    def write(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), INFLATE_BYTES):
                self._inflate(data[start : start + INFLATE_BYTES])
        except zlib.error as error:
            raise NotParseable(f"the body is not gzip: {error}") from None

    def _inflate(self, data: bytes) -> None:
        """What follows a member is copied: in a large piece, again and again for all in it."""
        while data:
            if self._inflater.eof:  # a file may be several gzip members, one after the other
                self._inflater = zlib.decompressobj(GZIP)
            super().write(self._inflater.decompress(data, WRITE_BYTES))
            data = self._inflater.unconsumed_tail or self._inflater.unused_data

    def finish(self) -> None:
        if not self._inflater.eof:
            raise NotParseable("the gzip body ends too early")
