"""Files whose bytes are checked to be UTF-8 while they are read, in one pass."""

import codecs
import io
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from typing_extensions import Buffer

from core.exceptions import NotParseable


class Utf8File(io.FileIO):
    """The bytes of a file. `on_read` receives each piece after the check.

    Reading raises `NotParseable` with the first byte that is not UTF-8 and its line.
    """

    def __init__(self, path: Path, on_read: Callable[[bytes], None] | None = None) -> None:
        super().__init__(path)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._on_read = on_read
        self._position, self._line = 0, 1

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(-1 if size is None else size) or b""
        self._check(piece)
        return piece

    def readinto(self, buffer: Buffer) -> int:
        count = super().readinto(buffer) or 0
        self._check(bytes(memoryview(buffer)[:count]))
        return count

    def _check(self, piece: bytes) -> None:
        pending = len(self._decoder.getstate()[0])
        try:
            self._decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            line = self._line + error.object[: error.start].count(b"\n")
            raise _refusal(error, self._position - pending, line) from error
        self._position += len(piece)
        self._line += piece.count(b"\n")
        if self._on_read is not None:
            self._on_read(piece)


def open_text(path: Path, newline: str) -> TextIO:
    """The characters of a file, without a byte-order mark."""
    return io.TextIOWrapper(
        io.BufferedReader(Utf8File(path)), encoding="utf-8-sig", newline=newline
    )


def _refusal(error: UnicodeDecodeError, offset: int, line: int) -> NotParseable:
    start = offset + error.start
    byte = error.object[error.start]
    if start == 0 and error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return NotParseable("the file is UTF-16: save it as UTF-8")
    return NotParseable(
        f"byte 0x{byte:02x} at position {start} (line {line}) is not UTF-8: save the file as UTF-8"
    )
