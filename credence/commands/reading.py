"""Rows for a command: a file or standard input, and what is said of them that cannot be read."""

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from credence.prediction_rows import BadRows, Rows
from credence.rendering import note
from credence.row_files import RowFormat, format_of, open_rows
from credence.types import Feature

STANDARD_INPUT = Path("-")


def existing(file: Path | None) -> Path | None:
    """The file; typer's complaint if there is none."""
    if file is not None and file != STANDARD_INPUT and not file.is_file():
        raise typer.BadParameter(f"there is no file {str(file)!r}")
    return file


@contextmanager
def rows_of(
    file: Path, features: Sequence[Feature], format_: RowFormat | None = None
) -> Iterator[Rows]:
    """The rows of a file or of standard input, which is CSV, or a text per line.

    Within, rows that cannot be read end the command with what is wrong with them.
    """
    piped: RowFormat = "text" if [f["type"] for f in features] == ["text"] else "csv"
    try:
        if file == STANDARD_INPUT and sys.stdin.isatty():
            raise BadRows("no rows: give a FILE, or pipe rows in")
        known = format_ or (piped if file == STANDARD_INPUT else format_of(file))
        source = sys.stdin.buffer if file == STANDARD_INPUT else file
        with open_rows(source, known, features) as rows:
            if rows.ignored:
                note(f"not features, ignored: {', '.join(rows.ignored)}")
            yield rows
    except (BadRows, csv.Error, UnicodeDecodeError) as error:
        raise typer.BadParameter(str(error), param_hint=str(file)) from None
