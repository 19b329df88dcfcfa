"""Predictions on standard output, part after part, in the formats that programs read."""

import csv
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

from credence.prediction_tables import Answer, for_programs, print_prediction

ResultFormat = Literal["table", "csv", "jsonl", "parquet", "arrow"]
BINARY = ("parquet", "arrow")
Write = Callable[[Answer, int], None]


@contextmanager
def result_writer(format_: ResultFormat) -> Iterator[Write]:
    """What writes an answer, given the number of its first row; the end is written on leaving."""
    match format_:
        case "table":
            yield print_prediction
        case "csv":
            yield write_csv
        case "jsonl":
            yield _write_json_lines
        case _:
            with _binary_writer(format_) as write:
                yield write


def write_csv(answer: Answer, first_row: int) -> None:
    """The header comes before the first row only."""
    headers, columns = for_programs(answer)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if first_row == 1:
        writer.writerow(headers)
    writer.writerows(map(_cell, row) for row in zip(*columns, strict=True))


def _write_json_lines(answer: Answer, first_row: int) -> None:
    headers, columns = for_programs(answer)
    for row in zip(*columns, strict=True):
        line = json.dumps(dict(zip(headers, row, strict=True)), ensure_ascii=False)
        sys.stdout.write(f"{line}\n")


@contextmanager
def _binary_writer(format_: ResultFormat) -> Iterator[Write]:
    """All parts have the types of the first one; what is missing throughout is a number."""
    import pyarrow as pa  # noqa: PLC0415 - a quarter of a second, for these formats alone
    from pyarrow import parquet  # noqa: PLC0415

    open_: Any = pa.ipc.new_stream if format_ == "arrow" else parquet.ParquetWriter
    writer: Any = None
    schema: Any = None

    def write(answer: Answer, first_row: int) -> None:
        nonlocal writer, schema
        headers, columns = for_programs(answer)
        arrays: list[Any] = [pa.array(column) for column in columns]
        arrays = [a.cast(pa.float64()) if pa.types.is_null(a.type) else a for a in arrays]
        table = pa.table(dict(zip(headers, arrays, strict=True)))
        if writer is None:
            schema = table.schema
            writer = open_(sys.stdout.buffer, schema)
        writer.write_table(table.cast(schema))

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _cell(value: Any) -> Any:
    """Booleans as JSON and most readers of CSV write them."""
    return str(value).lower() if isinstance(value, bool) else value
