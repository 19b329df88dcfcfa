"""Writes predictions to standard output, batch after batch, in several formats."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import typer

from credence.commands.prediction_table import print_prediction

if TYPE_CHECKING:
    from credence.client.arrow import Table

ResultFormat = Literal["table", "csv", "jsonl", "parquet", "arrow"]
BINARY = ("parquet", "arrow")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # the beginnings of a formula in spreadsheets
Write = Callable[["Table", int], None]


@contextmanager
def result_writer(format_: ResultFormat) -> Iterator[Write]:
    """A function that writes a table, given the number of its first row.

    The end of the block writes the end of the file, if the format has one.
    """
    match format_:
        case "table":
            yield print_prediction
        case "csv":
            yield write_csv
        case "jsonl":
            yield _write_json_lines
        case "arrow":
            from nanoarrow import ipc  # noqa: PLC0415

            with ipc.StreamWriter.from_writable(sys.stdout.buffer) as writer:
                yield lambda table, _: writer.write_stream(table)
        case "parquet":
            with _parquet_writer() as write:
                yield write


def write_csv(table: "Table", first_row: int) -> None:
    """Write the rows as CSV, the header before the first one."""
    writer = csv.writer(_Lines())
    if first_row == 1:
        writer.writerow(map(_harmless, table.column_names))
    writer.writerows([_harmless(_cell(value)) for value in row] for row in _rows(table))


class _Lines:
    """Takes the lines of a writer that ends them with CR and LF, so that it quotes both alone."""

    def write(self, line: str) -> None:
        """Print a line with LF at its end."""
        sys.stdout.write(line.removesuffix("\r\n") + "\n")


def _write_json_lines(table: "Table", first_row: int) -> None:
    for row in _rows(table):
        record = dict(zip(table.column_names, row, strict=True))
        sys.stdout.write(f"{json.dumps(record, ensure_ascii=False, default=_time)}\n")


def _rows(table: "Table") -> Iterator[tuple[Any, ...]]:
    return zip(*map(table.to_pylist, table.column_names), strict=True)


@contextmanager
def _parquet_writer() -> Iterator[Write]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - 170 MB, for this format alone
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        message = "parquet needs one more package: pip install pyarrow; the format arrow needs none"
        raise typer.BadParameter(message, param_hint="--format") from None
    writer: Any = None

    def write(table: "Table", _: int) -> None:
        nonlocal writer
        rows: Any = pa.table(table)
        writer = writer or parquet.ParquetWriter(sys.stdout.buffer, rows.schema)
        writer.write_table(rows)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _cell(value: Any) -> Any:
    """Booleans and lists as JSON writes them, times as RFC 3339, reasons in words."""
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return "; ".join(one["text"] for one in value) or None
    if isinstance(value, bool | list):
        return json.dumps(value, default=_time)
    return _time(value) if hasattr(value, "isoformat") else value


def _time(value: Any) -> str:
    """RFC 3339, in UTC as all times of the service."""
    return str(value.isoformat()).replace("+00:00", "Z")


def _harmless(value: Any) -> Any:
    """The value; a text that a spreadsheet would compute begins with an apostrophe.

    Source: OWASP, CSV Injection.
    """
    if not (isinstance(value, str) and value.startswith(FORMULA)) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
