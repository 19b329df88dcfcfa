"""A part of the predictions: one Parquet file, written whole, under a name of its own."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from core.destinations.overlap import behind
from core.destinations.place import Place


def part_name(run: str, number: int) -> str:
    """The file of a part. The same part of the same run has the same name, and no other has it.

    Args:
        run: what tells this run from all others.
    """
    return f"part-{number:05d}-{hashlib.sha256(run.encode()).hexdigest()[:12]}.parquet"


def write_part(
    place: Place,
    name: str,
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    show: Callable[[int], None],
) -> tuple[int, int]:
    """Write tables to a file while the next ones are made. Returns numbers of rows and bytes.

    Args:
        schema: what the tables are cast to.
        show: gets the numbers of rows as they are done.
    """
    rows = 0
    texts: Any = [field.name for field in schema if pa.types.is_string(field.type)]
    with place.writing(name) as file:
        with (
            pq.ParquetWriter(file, schema, use_dictionary=texts) as writer,
            behind(writer.write_table) as write,
        ):
            for table in tables:
                write(table.cast(schema))
                rows += table.num_rows
                show(table.num_rows)
        num_bytes = file.tell()
    return rows, num_bytes
