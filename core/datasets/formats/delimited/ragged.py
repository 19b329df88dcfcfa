"""Lines with more or fewer fields than the table has columns."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from core.datasets.files.source import Lines
from core.datasets.files.values import is_value
from core.datasets.findings.finding import Finding, examples_of
from core.datasets.formats.delimited.head import Head
from core.datasets.formats.delimited.pieces import text_lines, utf8_pieces
from core.datasets.formats.delimited.records import BrokenRecord, records
from core.exceptions import NotParseable
from models.messages import counted

MAX_FOOTERS = 20
MAX_RECORD_CHARACTERS = 2**24
FOOTER = re.compile(
    r"[\"'(*#]?\s*(grand |sub)?(total|sum|summe|gesamt|insgesamt|average|mean|count|source|quelle|"
    r"note|notes|end|eof|rows?|records?|generated|exported|stand|\d+ (rows?|records?|zeilen))\b",
    re.IGNORECASE,
)
HOW = "delimiter= and quote= set others"


@dataclass(frozen=True)
class Wrong:
    """A record with another number of fields than the table."""

    num_fields: int
    text: str


def check_left_out(wrong: Sequence[Wrong], tail: bytes, head: Head, path: Path) -> int:
    """The number of lines that were left out at the end as a footer.

    Raises:
        NotParseable: a record with another number of fields is not a footer; names its line.
    """
    if not wrong:
        return 0
    if not _end_the_file(wrong, tail) or not _are_footers(wrong, tail, head):
        check_records(path, head)
        line = wrong[0]
        raise NotParseable(
            f"a record has {counted(line.num_fields, 'field')} and the table {head.num_fields} "
            f"columns: give every record as many, or say how cells are separated ({HOW})"
        )
    return len(wrong)


def _end_the_file(wrong: Sequence[Wrong], tail: bytes) -> bool:
    filled = [line.strip() for line in tail.decode("utf-8", "replace").split("\n") if line.strip()]
    return filled[-len(wrong) :] == [one.text.strip() for one in wrong]


def _are_footers(wrong: Sequence[Wrong], tail: bytes, head: Head) -> bool:
    """Whether the lines do not look like rows that were cut: they are shorter, and say so."""
    text = wrong[0].text.strip()
    if any(one.num_fields >= head.num_fields for one in wrong):
        return False
    before = tail.decode("utf-8", "replace").rpartition(text)[0]
    gap = before.replace("\r", "").endswith("\n\n")
    first = text.split(head.dialect.delimiter)[0].strip()
    return bool(FOOTER.match(first)) or first == r"\." or (gap and not is_value(first))


def totals(table: pa.Table, row: int, lines: Lines) -> Iterator[Finding]:
    """The row of totals that was left out."""
    word = table.column(0)[row].as_py()
    yield Finding(
        code="lines_left_out",
        severity="warning",
        message=f"the last row begins with {word!r} and was left out as a row of totals; if it is "
        "not, change its first cell",
        rows=1,
        examples=examples_of(lines([row]), [word]),
    )


def footers(wrong: Sequence[Wrong]) -> Iterator[Finding]:
    """What was left out at the end."""
    if wrong:
        yield Finding(
            code="lines_left_out",
            severity="info",
            message=f"{counted(len(wrong), 'line')} at the end, with fewer fields than the table "
            "has columns, left out as a footer",
            rows=len(wrong),
            examples=examples_of([None] * len(wrong), [one.text.strip() for one in wrong]),
        )


def rows_before_empty_end(table: pa.Table) -> int:
    """The number of rows without those at the end whose cells are all empty.

    A spreadsheet writes them for rows that once were filled. With one column they are values.
    """
    end, columns = table.num_rows, table.columns
    while len(columns) > 1 and end and not any(column[end - 1].is_valid for column in columns):
        end -= 1
    return end


def empty_end(num_rows: int) -> Iterator[Finding]:
    """What is said about rows of empty cells at the end."""
    if num_rows:
        yield Finding(
            code="lines_left_out",
            severity="info",
            message=f"{counted(num_rows, 'row')} of empty cells at the end left out",
            rows=num_rows,
        )


def comments(num_lines: int, mark: str | None) -> Iterator[Finding]:
    """What is said about comment lines among the rows."""
    if num_lines:
        yield Finding(
            code="lines_left_out",
            severity="info",
            message=f"{counted(num_lines, 'line')} among the rows, beginning with {mark!r}, "
            "left out: comment= sets another mark",
            rows=num_lines,
        )


def check_records(path: Path, head: Head) -> None:
    """Raise `NotParseable` for the first record with another number of fields, by its line."""
    comment = head.layout.comment
    shift = head.layout.first_line - 1
    lines = _limited(text_lines(utf8_pieces(path, head.encoding, head.start)), shift)
    try:
        for record in records(lines, head.dialect, strict=True):
            if record.is_blank or (comment and record.cells[0].startswith(comment)):
                continue
            if len(record.cells) != head.num_fields:
                raise NotParseable(
                    f"line {record.line + shift} has {counted(len(record.cells), 'field')} and the "
                    f"header {head.num_fields}, separated by {head.dialect.delimiter!r}: give "
                    f"every record as many ({HOW})"
                )
    except BrokenRecord as error:
        raise NotParseable(
            f"the record that begins in line {error.line + shift} is not CSV ({error.reason}): is "
            "a quote not closed? quote= sets another, and quote=none takes quotes as text"
        ) from error


def _limited(lines: Iterator[str], shift: int) -> Iterator[str]:
    """The lines. Raises `NotParseable` for one of too many characters."""
    for number, line in enumerate(lines, start=shift + 1):
        if len(line) > MAX_RECORD_CHARACTERS:
            raise NotParseable(
                f"line {number} is not CSV, or its record has more than "
                f"{MAX_RECORD_CHARACTERS} characters: is a quote not closed?"
            )
        yield line
