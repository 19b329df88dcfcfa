"""Comment lines among the rows of a delimited text, taken out while it is read."""

import re
from collections.abc import Callable, Iterable, Iterator

from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.pieces import whole_lines


def without_comments(
    pieces: Iterable[bytes], mark: str, dialect: Dialect, count: Callable[[int], None]
) -> Iterator[bytes]:
    """The same text without lines that begin with the mark outside quotes.

    Args:
        count: takes the number of lines that a piece lost.
    """
    start = mark.encode()
    comment = re.compile(rb"^" + re.escape(start) + rb"[^\n]*\n?", re.MULTILINE)
    quote = dialect.quote.encode() if dialect.quote else b"\x00"
    inside = False
    for piece in whole_lines(pieces):
        quotes = piece.count(quote)
        if not inside and (not quotes or start not in piece):
            kept, lost = comment.subn(b"", piece) if start in piece else (piece, 0)
        else:
            lines = list(_outside(piece, start, quote, inside=inside))
            kept, lost = b"".join(lines), len(piece.splitlines()) - len(lines)
        count(lost)
        yield kept
        inside ^= bool(quotes % 2)


def _outside(piece: bytes, mark: bytes, quote: bytes, *, inside: bool) -> Iterator[bytes]:
    for line in piece.splitlines(keepends=True):
        if inside or not line.startswith(mark):
            yield line
            inside ^= bool(line.count(quote) % 2)
