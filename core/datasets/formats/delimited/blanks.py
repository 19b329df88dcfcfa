"""Blanks that are no part of a cell: several as one delimiter, or between delimiter and quote."""

import re
from collections.abc import Iterable, Iterator

from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.pieces import whole_lines

# Only the first blank of several begins a match: from each of them, the time would be quadratic.
ENDS = re.compile(rb"^[ \t]++|(?<![ \t])[ \t]++(?=\r?$)", re.MULTILINE)
RUNS = re.compile(rb"[ \t]+")
QUOTED_OR_RUN = re.compile(rb'"[^"\n]*"|[ \t]+')


def collapsed(line: str) -> str:
    """A line with one blank for several, and none at its ends."""
    return _collapsed(line.encode()).decode()


def without_blanks(pieces: Iterable[bytes], dialect: Dialect) -> Iterator[bytes]:
    """The same text as a dialect without `runs` and `padded` writes it."""
    if dialect.runs:
        return map(_collapsed, whole_lines(pieces))
    if dialect.padded and dialect.quote:
        mark, quote = (re.escape(one.encode()) for one in (dialect.delimiter, dialect.quote))
        blanks = rb" ++" if dialect.delimiter == "\t" else rb"[ \t]++"
        padded = rb"(^|" + mark + rb")" + blanks + rb"(?=" + quote + rb")"
        before_quote = re.compile(padded, re.MULTILINE)
        return (before_quote.sub(rb"\1", piece) for piece in whole_lines(pieces))
    return iter(pieces)


def _collapsed(piece: bytes) -> bytes:
    stripped = ENDS.sub(b"", piece)
    if b'"' not in stripped:
        return RUNS.sub(b" ", stripped)
    return QUOTED_OR_RUN.sub(lambda found: found[0] if found[0][:1] == b'"' else b" ", stripped)
