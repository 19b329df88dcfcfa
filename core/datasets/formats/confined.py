"""Readers that run in a child process with limits, so that no file harms this one."""

import importlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from core.datasets.files.options import Reading, ReadingOptions
from core.datasets.files.source import Reader, Source, row_numbers
from core.datasets.findings.finding import Finding
from core.datasets.formats.arrow import read_stream
from core.process.confined import Json, Limits, run
from core.process.resources import available_bytes

BASE_BYTES = 2**29  # that a reader takes besides the table
MOST_BYTES = 2**31
OUTPUT_BYTES = 2**20  # of schema and padding, besides the table
LINES = "\x1flines"  # no column of a data set has this name


def confined(reader: str, what: str) -> Reader:
    """A reader, given as `module:name`, that runs in a child process.

    Args:
        what: the name of what is read, for messages.
    """

    def read(path: Path, max_bytes: int, options: ReadingOptions) -> Source:
        share = max(BASE_BYTES, available_bytes() // 4)  # there may be several at a time
        memory = min(BASE_BYTES + max_bytes, MOST_BYTES, share)
        limits = Limits(memory, max_bytes + OUTPUT_BYTES)
        arguments = {"reader": reader, "path": str(path), "max_bytes": max_bytes}
        outcome = run(f"{__name__}:work", arguments | {"options": asdict(options)}, limits, what)
        stream = pa.BufferReader(pa.py_buffer(outcome.output))
        table = read_stream(stream, max_bytes + OUTPUT_BYTES)
        return _source(table, outcome.answer)

    return read


def work(file: Any, reader: str, path: str, max_bytes: int, options: Json) -> Json:
    """In the child: read the file, write its table, return all else that is known of it."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    module, _, name = reader.partition(":")
    read: Reader = getattr(importlib.import_module(module), name)
    source = read(Path(path), max_bytes, ReadingOptions(**options))
    table = source.table
    if source.lines is not row_numbers:
        lines = np.asarray(source.lines(range(table.num_rows)), np.int64)
        table = table.append_column(LINES, pa.array(lines))
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return {
        "reading": asdict(source.reading),
        "typed": source.typed,
        "mixed": sorted(source.mixed),
        "findings": [finding.to_json() for finding in source.findings],
    }


def _source(table: pa.Table, answer: Json) -> Source:
    lines: Any = row_numbers
    if LINES in table.column_names:
        numbers = table.column(LINES).to_numpy()
        table = table.drop_columns([LINES])

        def lines(rows: Sequence[int]) -> Sequence[int]:
            return [int(numbers[row]) for row in rows]

    return Source(
        table=table,
        reading=Reading(**answer["reading"]),
        lines=lines,
        typed=answer["typed"],
        mixed=frozenset(answer["mixed"]),
        findings=tuple(map(Finding.from_json, answer["findings"])),
    )
