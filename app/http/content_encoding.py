"""Bodies written to a file piece by piece, inflated on the way where they are compressed."""

import hashlib
import zlib
from collections.abc import Collection
from typing import BinaryIO

from core.exceptions import NotParseable, TooLarge, UnsupportedFormat

WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""How zlib is told which header and checksum to expect."""

PIECE_BYTES = 2**14  # of compressed bytes, inflated together
INFLATED_BYTES = 2**20  # at most, made of them before they are written


class BodyWriter:
    """Writes a body to a file, at most `max_bytes` of it, and takes its SHA-256 on the way."""

    def __init__(self, file: BinaryIO, max_bytes: int, limit: str) -> None:
        self._file = file
        self._room = max_bytes
        self._limit = limit
        self._sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Raises `TooLarge`, whose message is `limit`, before more than `max_bytes` are written."""
        self._room -= len(data)
        if self._room < 0:
            raise TooLarge(self._limit)
        self._sha256.update(data)
        self._file.write(data)

    def finish(self) -> str:
        """The SHA-256 of what was written, in hexadecimal; `NotParseable` if the end is missing."""
        return self._sha256.hexdigest()


class InflatingWriter(BodyWriter):
    """Inflates piece by piece: a small body that inflates to a huge one is never in memory."""

    def __init__(self, file: BinaryIO, max_bytes: int, limit: str, encoding: str) -> None:
        super().__init__(file, max_bytes, limit)
        self._encoding = encoding
        self._inflater = zlib.decompressobj(WINDOWS[encoding])

    def write(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), PIECE_BYTES):
                self._inflate(data[start : start + PIECE_BYTES])
        except zlib.error as error:
            raise NotParseable(f"the body is not {self._encoding}: {error}") from None

    def _inflate(self, data: bytes) -> None:
        """zlib copies what follows a member, so pieces are small: they may have many members."""
        while data:
            if self._inflater.eof:  # a gzip file may be several members, one after the other
                self._inflater = zlib.decompressobj(WINDOWS[self._encoding])
            super().write(self._inflater.decompress(data, INFLATED_BYTES))
            data = self._inflater.unconsumed_tail or self._inflater.unused_data

    def finish(self) -> str:
        if not self._inflater.eof:
            raise NotParseable(f"the {self._encoding} body ends too early")
        return super().finish()


def body_writer(
    file: BinaryIO, max_bytes: int, limit: str, encoding: str | None, known: Collection[str]
) -> BodyWriter:
    """The writer for a `Content-Encoding`, of which the route takes the `known` ones.

    Raises:
        UnsupportedFormat: for another encoding.
    """
    encoding = (encoding or "identity").lower()
    if encoding == "identity":
        return BodyWriter(file, max_bytes, limit)
    if encoding not in known:
        names = ", ".join(name for name in known if name != "x-gzip")
        raise UnsupportedFormat(
            f"Content-Encoding may be {names} or identity, not {encoding[:40]!r}"
        )
    return InflatingWriter(file, max_bytes, limit, encoding)
