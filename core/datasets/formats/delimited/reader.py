"""Delimited text: CSV, TSV and their kin, as columns of texts.

What the caller does not say is found out from the first lines: the encoding, the delimiter, the
quote, the lines above the header, the header. Empty cells are missing values; blank lines are
skipped; lines of another length are refused by their number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyarrow import csv as arrow_csv

from core.datasets.columns import check_names
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.files.totals import ends_with_totals
from core.datasets.formats.delimited import index_column, one_column, ragged, repeated_headers
from core.datasets.formats.delimited.blanks import without_blanks
from core.datasets.formats.delimited.comments import without_comments
from core.datasets.formats.delimited.dialect import Dialect
from core.datasets.formats.delimited.encodings import Undecodable
from core.datasets.formats.delimited.escapes import unescaped
from core.datasets.formats.delimited.head import Head, read_head
from core.datasets.formats.delimited.line_numbers import LineNumbers
from core.datasets.formats.delimited.pieces import PieceFile, utf8_pieces
from core.datasets.formats.limits import check_size
from core.exceptions import Invalid, NotParseable

MISSING = ["", r"\N"]
"""An empty cell; what PostgreSQL and MySQL write for a missing value."""
MAX_RECORD_BYTES = 2**24
BLOCK_BYTES = 2**20  # Arrow holds a few blocks at once
TAIL_BYTES = 2**16


def read(
    path: Path, max_bytes: int, options: ReadingOptions, preferred: Dialect | None = None
) -> Source:
    """Read a file as columns of texts.

    Args:
        preferred: of several dialects that fit equally well, the one to take.

    Raises:
        NotParseable: bytes are not in the encoding, a record has the wrong length or a quote is
            not closed; the message names the line.
        Invalid: there are no rows, or an option is wrong.
        TooLarge: the file or its table has more than `max_bytes`.
    """
    check_size(path.stat().st_size, max_bytes, "the file")
    try:
        return _read(path, max_bytes, options, read_head(path, options, preferred))
    except Undecodable as error:
        if options.encoding is not None or error.encoding != "utf-8":
            raise NotParseable(str(error)) from error
        wrong = error
    try:
        return _read(path, max_bytes, options, read_head(path, options, preferred, wrong))
    except Undecodable as error:
        raise NotParseable(str(error)) from error


def _read(path: Path, max_bytes: int, options: ReadingOptions, head: Head) -> Source:
    layout = head.layout
    check_names(head.names)
    table, seen = _parsed(path, head, max_bytes)
    if head.dialect.copied:
        table = unescaped(table)
    num_footers = ragged.check_left_out(seen.wrong, seen.tail, head, path)
    if seen.quotes % 2:  # closed quotes come in pairs, and so do doubled ones in a cell
        ragged.check_records(path, head)
    check_size(table.nbytes, max_bytes, "the file")
    num_rows = ragged.rows_before_empty_end(table)
    if not num_rows:
        raise Invalid([("/columns", "the file has a header and no rows: give at least one")])
    lines = LineNumbers(
        lambda: utf8_pieces(path, head.encoding, head.start),
        head.dialect,
        layout.comment,
        layout.first_line,
        table.num_rows + num_footers,
        seen.num_lines,
    )
    rows = _first(table, num_rows)
    num_totals = int(num_footers == 0 and ends_with_totals(rows))
    rows = _first(rows, num_rows - num_totals)
    rows, row_lines, headers = repeated_headers.without(rows, head, lines)
    kept, is_index, findings = index_column.apply(rows, head, options)
    return Source(
        table=kept,
        reading=head.reading(options, index=is_index),
        lines=row_lines,
        typed=False,
        findings=(
            *(one for one in head.findings if options.header is None or one.fix is None),
            *findings,
            *headers,
            *one_column.doubt(kept, head),
            *ragged.comments(seen.comments, layout.comment),
            *ragged.footers(seen.wrong[:num_footers]),
            *ragged.empty_end(table.num_rows - num_rows),
            *(ragged.totals(table, num_rows - 1, lines) if num_totals else ()),
        ),
    )


def _first(table: pa.Table, num_rows: int) -> pa.Table:
    """The first rows; a slice of very many columns takes time and memory."""
    return table if num_rows == table.num_rows else table[:num_rows]


@dataclass
class Seen:
    """What passes by while Arrow reads: quotes, lines, cells, lines of another length.

    Raises `TooLarge` if 8 bytes per cell exceed `max_bytes`.
    """

    max_bytes: int
    dialect: Dialect
    first_line: int
    quotes: int = 0
    comments: int = 0
    newlines: int = 0
    tail: bytes = b""
    wrong: list[ragged.Wrong] = field(default_factory=list)
    _cells: int = 0
    _line_bytes: int = 0

    def count(self, piece: bytes) -> None:
        newlines = piece.count(b"\n")
        self._check_length(piece)
        if self.dialect.quote:
            self.quotes += piece.count(self.dialect.quote.encode())
        self._cells += piece.count(self.dialect.delimiter.encode()) + newlines
        self.newlines += newlines
        self.tail = (self.tail + piece[-TAIL_BYTES:])[-TAIL_BYTES:]
        check_size(8 * self._cells, self.max_bytes, "the file")

    def count_comments(self, lines: int) -> None:
        self.comments += lines

    def _check_length(self, piece: bytes) -> None:
        """Raise `NotParseable` for a line of more than `MAX_RECORD_BYTES`; Arrow might not."""
        first = piece.find(b"\n")
        if self._line_bytes + (first if first >= 0 else len(piece)) > MAX_RECORD_BYTES:
            raise NotParseable(
                f"line {self.first_line + self.newlines} is not CSV, or has more than "
                f"{MAX_RECORD_BYTES} bytes"
            )
        last = len(piece) - piece.rfind(b"\n") - 1
        self._line_bytes = last + (self._line_bytes if first < 0 else 0)

    @property
    def num_lines(self) -> int:
        return self.newlines + (1 if self.tail and not self.tail.endswith(b"\n") else 0)

    def on_wrong(self, row: arrow_csv.InvalidRow) -> Literal["skip", "error"]:
        if not row.text.strip():
            return "skip"
        self.wrong.append(ragged.Wrong(row.actual_columns, row.text))
        return "skip" if len(self.wrong) <= ragged.MAX_FOOTERS else "error"


def _parsed(path: Path, head: Head, max_bytes: int) -> tuple[pa.Table, Seen]:
    """The rows; in small blocks, and in large ones if a record is longer than that.

    A block has at least 2048 bytes a column: Arrow itself takes that per block.
    """
    least = 2048 * head.num_fields
    for block_bytes in (max(BLOCK_BYTES, least), max(MAX_RECORD_BYTES, least)):
        seen = Seen(max_bytes, head.dialect, head.layout.first_line)
        try:
            return _parse(path, head, seen, block_bytes), seen
        except pa.ArrowInvalid as error:  # do not show its message: it quotes the data
            if not seen.tail:
                return pa.table({name: pa.array([], pa.string()) for name in head.names}), seen
            if seen.wrong or block_bytes >= MAX_RECORD_BYTES:
                ragged.check_records(path, head)
                raise NotParseable(
                    f"the file is not CSV, or has a record of more than {MAX_RECORD_BYTES} bytes"
                ) from error
    raise AssertionError("unreachable")


def _parse(path: Path, head: Head, seen: Seen, block_bytes: int) -> pa.Table:
    names = [str(place) for place in range(head.num_fields)]
    file: Any = PieceFile(_pieces(path, head, seen))
    table = arrow_csv.read_csv(
        file,
        read_options=arrow_csv.ReadOptions(block_size=block_bytes, column_names=names),
        parse_options=arrow_csv.ParseOptions(
            delimiter=head.dialect.delimiter,
            quote_char=head.dialect.quote or False,
            double_quote=head.dialect.escape is None,
            escape_char=head.dialect.escape or False,
            newlines_in_values=True,
            invalid_row_handler=seen.on_wrong,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=MISSING,
            strings_can_be_null=True,
        ),
    )
    return table.rename_columns(head.names)


def _pieces(path: Path, head: Head, seen: Seen) -> Iterator[bytes]:
    """The rows in UTF-8, counted; comment lines are taken out after they were counted."""
    pieces = _counted(utf8_pieces(path, head.encoding, head.start), seen)
    if head.layout.comment is not None:
        pieces = without_comments(pieces, head.layout.comment, head.dialect, seen.count_comments)
    return without_blanks(pieces, head.dialect)


def _counted(pieces: Iterator[bytes], seen: Seen) -> Iterator[bytes]:
    for piece in pieces:
        seen.count(piece)
        yield piece
