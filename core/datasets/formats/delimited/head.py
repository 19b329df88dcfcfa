"""The beginning of a delimited text: its encoding, its dialect, its layout."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from core.datasets.files.options import Reading, ReadingOptions
from core.datasets.findings.finding import Finding
from core.datasets.formats.delimited import column_names
from core.datasets.formats.delimited.detection import detect
from core.datasets.formats.delimited.dialect import Dialect, character
from core.datasets.formats.delimited.dialects import NONE, find_dialect
from core.datasets.formats.delimited.encodings import Encoding, Undecodable
from core.datasets.formats.delimited.head_findings import encoding_finding, layout_findings
from core.datasets.formats.delimited.layout import Layout, find_layout
from core.datasets.formats.delimited.pieces import utf8_pieces
from core.datasets.formats.delimited.sniffer import sniff
from core.datasets.formats.delimited.width import check_width
from core.exceptions import NotParseable

HEAD_BYTES = 2**18  # enough for the dialect of most files
MAX_HEAD_BYTES = 2**24 + 2**20
MIN_LINES = 20
DIALECT_CHARACTERS = 2**20  # of lines longer than that, the beginning says enough
EXCEL_SEPARATOR = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Head:
    """What the first lines say.

    Args:
        names: of all columns, those without a name in the file included.
        unnamed: places of the columns that the file gives no name.
        start: where the rows begin, in bytes of UTF-8.
        is_whole: whether the file ends with these lines.
    """

    encoding: Encoding
    dialect: Dialect
    layout: Layout
    names: list[str]
    unnamed: frozenset[int]
    start: int
    is_whole: bool
    findings: tuple[Finding, ...]

    @property
    def num_fields(self) -> int:
        return len(self.names)

    def reading(self, options: ReadingOptions, *, index: bool) -> Reading:
        """How the file is read, for its owner."""
        return Reading(
            delimiter=None if self.dialect.delimiter == NONE else self.dialect.delimiter,
            quote=self.dialect.quote,
            encoding=self.encoding.name,
            decimal=options.decimal,
            header=self.layout.header,
            skip=self.layout.skip,
            comment=self.layout.comment,
            index=index,
        )


def read_head(
    path: Path,
    options: ReadingOptions,
    preferred: Dialect | None = None,
    undecodable: Undecodable | None = None,
) -> Head:
    """Find out what the caller does not say.

    Args:
        undecodable: the byte that is not UTF-8, if one was found.

    Raises:
        NotParseable: the file is empty, or mixes encodings.
        Invalid: the encoding that the caller names does not exist.
        Undecodable: bytes of the first lines are not in the encoding.
    """
    encoding, guessed = detect(path, options.encoding, undecodable)
    text, is_whole = _text(path, encoding)
    return _of_text(text, encoding, options, preferred, is_whole=is_whole, guessed=guessed)


def _text(path: Path, encoding: Encoding) -> tuple[str, bool]:
    """The first lines, and whether they are all."""
    data, is_whole = _first(utf8_pieces(path, encoding, piece_bytes=HEAD_BYTES))
    if not is_whole:
        data = data[: data.rfind(b"\n") + 1] or data
    return data.decode("utf-8", "replace"), is_whole


def _first(pieces: Iterator[bytes]) -> tuple[bytes, bool]:
    kept: list[bytes] = []
    size = lines = 0
    for piece in pieces:
        kept.append(piece)
        size, lines = size + len(piece), lines + piece.count(b"\n")
        if size > MAX_HEAD_BYTES or (size >= HEAD_BYTES and lines >= MIN_LINES):
            return _cut(b"".join(kept)), False
    return b"".join(kept), True


def _cut(data: bytes) -> bytes:
    """The first lines alone: the sample's size, but at least some lines."""
    end = HEAD_BYTES
    if data.count(b"\n", 0, end) < MIN_LINES:
        end = -1
        for _ in range(MIN_LINES):
            end = data.find(b"\n", end + 1)
            if end < 0:
                return data
    return data[: end + 1]


def _of_text(
    text: str,
    encoding: Encoding,
    options: ReadingOptions,
    preferred: Dialect | None,
    *,
    is_whole: bool,
    guessed: list[tuple[int, bytes]],
) -> Head:
    if options.skip is None and (named := EXCEL_SEPARATOR.match(text)):
        options = replace(options, skip=1, delimiter=options.delimiter or named[1])
    below = text.split("\n", options.skip or 0)[-1]
    delimiter = None if options.delimiter is None else character(options.delimiter)
    dialect = find_dialect(
        below[:DIALECT_CHARACTERS],
        delimiter=delimiter,
        quote=_quote(options.quote),
        first=preferred if preferred and preferred.delimiter in text else sniff(below),
    )
    check_width(below, dialect)
    layout = find_layout(text, dialect, options)
    if layout is None:
        raise NotParseable("the file is empty: give a header and at least one row")
    found = column_names.of_layout(layout)
    findings = list(layout_findings(layout, found, dialect))
    if guessed:
        findings.insert(0, encoding_finding(encoding, guessed, dialect))
    return Head(
        encoding=encoding,
        dialect=dialect,
        layout=layout,
        names=found.names,
        unnamed=found.unnamed,
        start=_offset(text, layout.first_line),
        is_whole=is_whole,
        findings=tuple(findings),
    )


def _quote(given: str | None) -> str | None:
    return "" if given is not None and given.lower() == "none" else given


def _offset(text: str, line: int) -> int:
    """Where a line begins, in bytes of UTF-8."""
    position = 0
    for _ in range(line - 1):
        end = text.find("\n", position)
        if end < 0:
            return len(text.encode())
        position = end + 1
    return len(text[:position].encode())
