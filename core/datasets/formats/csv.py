"""CSV as in RFC 4180: UTF-8, a header, commas; quoted fields may hold line breaks.

Empty cells, NA, N/A, NaN, nan, null and NULL are missing values. Blank lines are skipped.
"""

import csv
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv as arrow_csv

from core.datasets.columns import check_names
from core.datasets.formats.limits import check_size
from core.datasets.formats.utf8 import Utf8File, open_text
from core.exceptions import Invalid, NotParseable

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
MAX_RECORD_BYTES = 2**24


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read a file and infer the column types.

    Raises:
        NotParseable: bytes are not UTF-8, a record has the wrong length or a quote is not closed;
            the message names the line.
        Invalid: a column name is empty or occurs twice.
        TooLarge: the file or its table has more than `max_bytes`.
    """
    check_size(path.stat().st_size, max_bytes, "the CSV file")
    names = _header(path)
    check_names(names)
    marks = _Marks(max_bytes)
    try:
        table = _parse(path, len(names), marks)
        if marks.quotes % 2:  # closed quotes come in pairs, and so do doubled ones in a field
            _check_records(path)
    except pa.ArrowInvalid as error:  # do not show its message: it quotes the data
        _check_records(path)
        raise NotParseable(
            f"the file is not CSV, or has a record of more than {MAX_RECORD_BYTES} bytes"
        ) from error
    check_size(table.nbytes, max_bytes, "the CSV file")
    return table


class _Marks:
    """Counts quotes and cells. Raises `TooLarge` if 8 bytes per cell exceed `max_bytes`."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._cells = 0
        self.quotes = 0

    def count(self, piece: bytes) -> None:
        self.quotes += piece.count(b'"')
        self._cells += piece.count(b",") + piece.count(b"\n")
        check_size(8 * self._cells, self._max_bytes, "the CSV file")


def _parse(path: Path, num_columns: int, marks: _Marks) -> pa.Table:
    """Parse in blocks of at least 2048 bytes a column: Arrow itself takes that per block."""
    block_size = max(MAX_RECORD_BYTES, 2048 * num_columns)
    with Utf8File(path, marks.count) as raw:
        file: Any = raw  # pyarrow's stubs ask for more methods than it calls
        return arrow_csv.read_csv(
            file,
            read_options=arrow_csv.ReadOptions(block_size=block_size),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True),
        )


def _header(path: Path) -> list[str]:
    with closing(_records(path)) as records:
        filled = (record for _, record in records if record)
        names, first_row = next(filled, None), next(filled, None)
    if names is None:
        raise NotParseable("the CSV file is empty: give a header and at least one row")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise NotParseable(
            "the CSV header is one column that holds ';', '|' or a tab: separate columns by commas"
        )
    if first_row is None:
        raise Invalid([("/columns", "the CSV file has a header and no rows: give at least one")])
    return names


def _check_records(path: Path) -> None:
    """Raise `NotParseable` for the first record with more or fewer fields than the header."""
    expected = 0
    for line, record in _records(path, strict=True):
        expected = expected or len(record)
        if record and len(record) != expected:
            raise NotParseable(
                f"line {line} has {len(record)} fields and the header {expected}: give every "
                "record as many fields as the header"
            )


def _records(path: Path, *, strict: bool = False) -> Generator[tuple[int, list[str]]]:
    """Each record with the number of its first line.

    Python's reader is slow, but it counts lines.

    Raises:
        NotParseable: a record is not CSV or has more than `MAX_RECORD_BYTES` characters; the
            message names the line.
    """
    csv.field_size_limit(MAX_RECORD_BYTES)
    left, line = MAX_RECORD_BYTES, 1

    def lines() -> Iterator[str]:
        nonlocal left
        while text := file.readline(left + 1):
            left -= len(text)
            if left < 0:
                raise NotParseable(
                    f"line {reader.line_num + 1} is not CSV, or its record has more than "
                    f"{MAX_RECORD_BYTES} characters: is a quote not closed?"
                )
            yield text

    with open_text(path, newline="") as file:
        reader = csv.reader(lines(), strict=strict)
        try:
            for record in reader:
                left = MAX_RECORD_BYTES
                yield line, record
                line = reader.line_num + 1
        except csv.Error as error:
            raise NotParseable(
                f"the record that ends in line {reader.line_num} is not CSV ({error}): "
                "is a quote not closed?"
            ) from error
