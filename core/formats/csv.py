"""CSV after RFC 4180: a header, commas, quoted fields that may hold line breaks, UTF-8.

Empty cells, NA, N/A, NaN, nan, null and NULL are missing values. Blank lines are skipped.
"""

import csv
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow_csv

from core.columns import check_names
from core.exceptions import Invalid, NotParseable
from core.formats.limits import check_size
from core.formats.unicode import check_utf8

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL"]
BLOCK_BYTES = 2**24  # no record may be longer


def read(path: Path, max_bytes: int) -> pa.Table:
    """Read a file with inferred column types.

    Raises:
        NotParseable: for bytes that are not UTF-8 and records of the wrong length.
        Invalid: for column names that occur twice or are empty, and for a header without rows.
    """
    check_size(path.stat().st_size, max_bytes, "the CSV file")
    check_utf8(path)
    check_names(_header(path))
    try:
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(null_values=MISSING, strings_can_be_null=True),
        )
    except pa.ArrowInvalid as error:
        raise _explain(path, error) from error
    if table.num_rows == 0:
        raise Invalid([("/columns", "the CSV file has a header and no rows: give at least one")])
    check_size(table.nbytes, max_bytes, "the CSV file")
    return table


def _header(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        names = next((record for record in csv.reader(file) if record), [])
    if not names:
        raise NotParseable("the CSV file is empty: give a header and at least one row")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise NotParseable(
            "the CSV header is a single column that holds ';', '|' or a tab: separate by commas"
        )
    return names


def _explain(path: Path, error: pa.ArrowInvalid) -> NotParseable:
    """Arrow's own message quotes the record; say the line instead."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        expected = 0
        try:
            for record in reader:
                expected = expected or len(record)
                if record and len(record) != expected:
                    return NotParseable(
                        f"line {reader.line_num} has {len(record)} fields, the header {expected}: "
                        "give every record as many fields as the header"
                    )
        except csv.Error as reason:
            return NotParseable(f"line {reader.line_num} is not CSV: {reason}")
    if "straddling" in str(error):
        return NotParseable(f"a record is longer than {BLOCK_BYTES} bytes: is a quote not closed?")
    return NotParseable("the file is not CSV: give a header and records separated by commas")
