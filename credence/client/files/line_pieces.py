"""Text files in pieces of whole rows, so that a large one is predicted in several requests."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

MAX_ROW_BYTES = 2**20  # a row with a line break in quotes is longer than its line
QUOTE = b'"'


def rows_of(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The rows of a CSV or JSON-lines file: lines, joined while a quote is open."""
    row = b""
    for line in lines:
        row += line
        if row.count(QUOTE) % 2 == 0 or len(row) > MAX_ROW_BYTES:
            yield row
            row = b""
    if row:
        yield row


def is_splittable(head: bytes) -> bool:
    """Whether lines end in one byte: not in UTF-16 and UTF-32, nor in packed and binary files."""
    return b"\0" not in head and not head.startswith((b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b"))


class Pieces:
    """Rows in pieces; a piece that is too large is put back, and comes again as smaller ones."""

    def __init__(self, lines: Iterable[bytes], max_rows: int, max_bytes: int) -> None:
        self._rows = rows_of(lines)
        self._max_rows, self._max_bytes = max(2, max_rows), max_bytes

    def next(self) -> list[bytes]:
        """The next rows; none at the end."""
        piece: list[bytes] = []
        num_bytes = 0
        for row in islice(self._rows, self._max_rows):
            piece.append(row)
            num_bytes += len(row)
            if num_bytes > self._max_bytes:
                break
        return piece

    def put_back(self, piece: Sequence[bytes]) -> None:
        """From now on, pieces have at most half as many rows as this one."""
        self._max_rows = max(2, len(piece) // 2)
        self._rows = chain(piece, self._rows)


def header_of(piece: Sequence[bytes], reading: dict[str, Any]) -> bytes:
    """The row that names the columns, to be put before the later pieces; empty if there is none.

    Args:
        piece: the first one.
        reading: how the service has read it.
    """
    if not reading.get("header"):
        return b""
    comment = str(reading.get("comment") or "\0").encode()
    rows = (row for row in piece[int(reading.get("skip") or 0) :] if row.strip())
    return next((row for row in rows if not row.lstrip().startswith(comment)), b"")
