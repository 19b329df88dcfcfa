"""Comment lines among the rows of a delimited text, taken out while it is read."""

import re
from collections.abc import Iterable, Iterator

from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.pieces import whole_lines


def without_comments(pieces: Iterable[bytes], mark: str, dialect: Dialect) -> Iterator[bytes]:
    """The same text without lines that begin with the mark outside quotes."""
    start = mark.encode()
    comment = re.compile(rb"^" + re.escape(start) + rb"[^\n]*\n?", re.MULTILINE)
    quote = dialect.quote.encode() if dialect.quote else b"\x00"
    inside = False
    for piece in whole_lines(pieces):
        quotes = piece.count(quote)
        if not inside and (not quotes or start not in piece):
            yield comment.sub(b"", piece) if start in piece else piece
        else:
            yield b"".join(_outside(piece, start, quote, inside=inside))
        inside ^= bool(quotes % 2)


def _outside(piece: bytes, mark: bytes, quote: bytes, *, inside: bool) -> Iterator[bytes]:
    for line in piece.splitlines(keepends=True):
        if inside or not line.startswith(mark):
            yield line
            inside ^= bool(line.count(quote) % 2)
