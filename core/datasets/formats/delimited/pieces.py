"""The bytes of a text file as UTF-8, piece by piece. Steps are generators of pieces."""

import codecs
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

from core.datasets.formats.delimited.encodings import Encoding, Undecodable

PIECE_BYTES = 2**20


def utf8_pieces(
    path: Path, encoding: Encoding, start: int = 0, piece_bytes: int = PIECE_BYTES
) -> Iterator[bytes]:
    """The file in UTF-8, without a byte-order mark; a lone CR that ends lines becomes LF.

    Args:
        start: bytes to leave out, counted in UTF-8.

    Raises:
        Undecodable: a byte is not in the encoding; the error has its position and its line.
    """
    pieces = _decoded(path, encoding, piece_bytes)
    if encoding.bare_cr:
        pieces = (piece.replace(b"\r", b"\n") for piece in pieces)
    return _from(pieces, start) if start else pieces


def _decoded(path: Path, encoding: Encoding, piece_bytes: int) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding.name)()
    line, position = 1, encoding.bom_bytes
    with path.open("rb") as file:
        file.seek(encoding.bom_bytes)
        while True:
            raw = file.read(piece_bytes)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(raw, final=not raw)
            except UnicodeError as error:
                raise _undecodable(error, encoding, position - pending, line) from error
            position += len(raw)
            piece = raw if encoding.is_utf8 else text.encode("utf-8", "surrogatepass")
            line += piece.count(b"\n")
            if piece:
                yield piece
            if not raw:
                return


def _undecodable(error: UnicodeError, encoding: Encoding, position: int, line: int) -> Undecodable:
    if not isinstance(error, UnicodeDecodeError):
        return Undecodable(encoding.name, position, line, b"")
    before, wrong = error.object[: error.start], error.object[error.start : error.start + 1]
    lines = before.decode(encoding.name, "ignore").count("\n")
    return Undecodable(encoding.name, position + error.start, line + lines, bytes(wrong))


def _from(pieces: Iterable[bytes], start: int) -> Iterator[bytes]:
    for piece in pieces:
        if start < len(piece):
            yield piece[start:]
        start = max(0, start - len(piece))


def whole_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that end with a line, but for the last."""
    rest: list[bytes] = []
    for piece in pieces:
        end = piece.rfind(b"\n") + 1
        if not end:
            rest.append(piece)
            continue
        yield b"".join((*rest, piece[:end]))
        rest = [piece[end:]]
    if last := b"".join(rest):
        yield last


def text_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Each line with its end."""
    for piece in whole_lines(pieces):
        yield from io.StringIO(piece.decode("utf-8", "replace"), newline="")


class PieceFile(io.RawIOBase):
    """A file that reads pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        """`size` bytes; less only at the end, for Arrow takes what it gets as a block."""
        kept, count = [self._rest], len(self._rest)
        while size < 0 or count < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            kept.append(piece)
            count += len(piece)
        data = b"".join(kept)
        end = count if size < 0 else size
        self._rest = data[end:]
        return data[:end]
