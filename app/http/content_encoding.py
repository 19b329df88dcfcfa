"""Writes bodies to a file piece by piece, and inflates compressed ones."""

import hashlib
import zlib
from collections.abc import Collection
from typing import BinaryIO

from core.exceptions import NotParseable, TooLarge, UnsupportedFormat

WINDOWS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}
"""The `wbits` of zlib, which select the header and the checksum."""

PIECE_BYTES = 2**14  # compressed bytes that are inflated in one call
INFLATED_BYTES = 2**20  # that one call makes at most


class BodyWriter:
    """Writes a body to a file and computes its SHA-256.

    Args:
        max_bytes: that may be written.
        limit: the message of the error when there are more.
    """

    def __init__(self, file: BinaryIO, max_bytes: int, limit: str) -> None:
        self._file = file
        self._room = max_bytes
        self._limit = limit
        self._sha256 = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Write some bytes. Raises `TooLarge` before more than `max_bytes` are written."""
        self._room -= len(data)
        if self._room < 0:
            raise TooLarge(self._limit)
        self._sha256.update(data)
        self._file.write(data)

    def finish(self) -> str:
        """The SHA-256 in hexadecimal. Raises `NotParseable` if the end of the body is missing."""
        return self._sha256.hexdigest()


class InflatingWriter(BodyWriter):
    """Inflates piece by piece, so that the inflated body is never in memory as a whole."""

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
        """Inflate a small piece: zlib copies the rest of it at the end of each gzip member."""
        while data:
            if self._inflater.eof:  # a gzip file may have several members, one after the other
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
    """The writer for a `Content-Encoding`.

    Args:
        known: the encodings that the route takes, besides identity.

    Raises:
        UnsupportedFormat: the encoding is another one.
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
