"""CSV after RFC 4180: a header, commas, quoted fields that may hold line breaks, UTF-8.

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
    """Read a file with inferred column types.

    Raises:
        NotParseable: for bytes that are not UTF-8, records of the wrong length and quotes that are
            not closed; the message names the line.
        Invalid: for column names that are empty or occur twice.
        TooLarge: naming the limit.
    """
    check_size(path.stat().st_size, max_bytes, "the CSV file")
    names = _header(path)
    check_names(names)
    marks = _Marks(max_bytes)
    try:
        table = _parse(path, len(names), marks)
        if marks.quotes % 2:  # closed quotes come in pairs, doubled ones inside a field too
            _check_records(path)
    except pa.ArrowInvalid as error:  # whose message quotes the data
        _check_records(path)
        raise NotParseable(
            f"the file is not CSV, or has a record of more than {MAX_RECORD_BYTES} bytes"
        ) from error
    check_size(table.nbytes, max_bytes, "the CSV file")
    return table


class _Marks:
    """Counts quotes and cells, and refuses more cells than there may be numbers of 8 bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._cells = 0
        self.quotes = 0

    def count(self, piece: bytes) -> None:
        self.quotes += piece.count(b'"')
        self._cells += piece.count(b",") + piece.count(b"\n")
        check_size(8 * self._cells, self._max_bytes, "the CSV file")


def _parse(path: Path, num_columns: int, marks: _Marks) -> pa.Table:
    """In blocks of a thousand cells a column or more, as Arrow takes two kilobytes for each."""
    block_size = max(MAX_RECORD_BYTES, 2048 * num_columns)
    with Utf8File(path, marks.count) as raw:
        file: Any = raw  # its stubs want more of a file than is read
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
    """Raise `NotParseable` for the first record that is not as long as the header."""
    expected = 0
    for line, record in _records(path, strict=True):
        expected = expected or len(record)
        if record and len(record) != expected:
            raise NotParseable(
                f"line {line} has {len(record)} fields and the header {expected}: give every "
                "record as many fields as the header"
            )


def _records(path: Path, *, strict: bool = False) -> Generator[tuple[int, list[str]]]:
    """The records and their first lines, by Python's reader: slow, but it counts lines.

    Raises:
        NotParseable: naming the line, before a record fills the memory.
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
