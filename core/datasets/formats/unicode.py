"""UTF-8 or a clear word about where it is not."""

import codecs
from pathlib import Path

from core.exceptions import NotParseable

CHUNK_BYTES = 2**20


def check_utf8(path: Path) -> None:
    """Read a file through once.

    Raises:
        NotParseable: naming the first byte that is not UTF-8 and its line.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    position, line = 0, 1
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise _refusal(error, position - pending, line) from error
            position += len(chunk)
            line += chunk.count(b"\n")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise _refusal(error, position - len(error.object), line) from error


def _refusal(error: UnicodeDecodeError, offset: int, line: int) -> NotParseable:
    start = offset + error.start
    byte = error.object[error.start]
    if start == 0 and error.object[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return NotParseable("the file is UTF-16: save it as UTF-8")
    return NotParseable(
        f"byte 0x{byte:02x} at position {start} (line {line}) is not UTF-8: save the file as UTF-8"
    )
