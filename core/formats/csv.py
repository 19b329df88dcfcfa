"""CSV after RFC 4180: a header, commas, quoted fields that may hold line breaks, UTF-8.

Empty cells, NA, N/A, NaN, nan, null and NULL are missing values. Blank lines are skipped.
"""

import csv
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from core.columns import check_names
from core.exceptions import NotParseable
from core.formats.limits import check_size
from core.formats.unicode import check_utf8

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
MAX_RECORD_BYTES = 2**24


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read a file with inferred column types.

    Raises:
        NotParseable: for bytes that are not UTF-8 and records of the wrong length, by line.
        Invalid: for column names that are empty or occur twice.
        TooLarge: naming the limit.
    """
    check_size(path.stat().st_size, max_bytes, "the CSV file")
    check_utf8(path)
    check_names(_header(path))
    try:
        with path.open("rb") as file:  # a path would be unpacked after its suffix
            table = arrow_csv.read_csv(
                file,
                read_options=arrow_csv.ReadOptions(block_size=MAX_RECORD_BYTES),
                parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    null_values=MISSING, strings_can_be_null=True
                ),
            )
    except pa.ArrowInvalid as error:
        raise _explain(path) from error
    check_size(table.nbytes, max_bytes, "the CSV file")
    return table


def _header(path: Path) -> list[str]:
    csv.field_size_limit(MAX_RECORD_BYTES)
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            names = next((record for record in csv.reader(file) if record), [])
        except csv.Error as error:
            raise NotParseable(f"the CSV header cannot be read: {error}") from error
    if not names:
        raise NotParseable("the CSV file is empty: give a header and at least one row")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise NotParseable(
            "the CSV header is one column that holds ';', '|' or a tab: separate columns by commas"
        )
    return names


def _explain(path: Path) -> NotParseable:
    """Find the line, because Arrow's own message quotes the data instead."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader, expected, start = csv.reader(file), 0, 1
        try:
            for record in reader:
                expected = expected or len(record)
                if record and len(record) != expected:
                    return NotParseable(
                        f"line {start} has {len(record)} fields and the header {expected}: give "
                        "every record as many fields as the header"
                    )
                start = reader.line_num + 1
        except csv.Error:
            pass
    return NotParseable(
        f"the record in line {start} is not CSV, or longer than {MAX_RECORD_BYTES} bytes: "
        "is a quote not closed?"
    )
