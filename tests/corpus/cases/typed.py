"""JSON, and formats that declare types."""

import io
import json
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import feather, orc, parquet

from tests.corpus.case import PLAIN, PLAIN_TYPES, PLAIN_VALUES, Case, Said

AS_PLAIN = {"rows": 16, "types": PLAIN_TYPES, "values": PLAIN_VALUES}
RECORDS = [dict(zip(PLAIN_TYPES, row, strict=True)) for row in PLAIN]
NESTED = [
    {
        "id": f"k{i % 4}",
        "place": {"city": "Oslo" if i % 2 else "Rome", "at": {"lat": i * 7 % 12 + 0.5}},
        "y": i % 5,
    }
    for i in range(12)
]
TABLE = pa.table({name: [row[name] for row in RECORDS] for name in PLAIN_TYPES})
STRUCTS = pa.table(
    {
        "place": [
            {"city": "Oslo" if i % 2 else "Rome", "size": i * 7 % 12 + 0.5} for i in range(12)
        ],
        "y": [i % 5 for i in range(12)],
    }
)
FIXED_LISTS = pa.table(
    {
        "embedding": pa.array(
            [[i * 0.5, 1.0 - i, 2.0] for i in range(12)], pa.list_(pa.float32(), 3)
        ),
        "y": [i % 5 for i in range(12)],
    }
)
EQUAL_LISTS = pa.table(
    {
        "embedding": pa.array([[i * 0.5, 1.0 - i, 2.0] for i in range(12)], pa.list_(pa.float64())),
        "y": [i % 5 for i in range(12)],
    }
)
RAGGED_LISTS = pa.table(
    {
        "tags": pa.array([["a", "b"][: 1 + i % 2] for i in range(12)], pa.list_(pa.string())),
        "y": [i % 5 for i in range(12)],
    }
)
DAYS = [date(2021, 1, 28) + timedelta(days=17 * i) for i in range(12)]
TYPES = pa.table(
    {
        "price": pa.array(
            [Decimal(i * 7 % 12) + Decimal("0.25") for i in range(12)], pa.decimal128(9, 2)
        ),
        "day": pa.array(DAYS, pa.date32()),
        "kind": pa.array([f"k{i % 3}" for i in range(12)]).dictionary_encode(),
        "ok": [i % 3 == 0 for i in range(12)],
        "tiny": pa.array([i % 5 for i in range(12)], pa.int8()),
        "big": pa.array([i * i % 7 for i in range(12)], pa.uint64()),
    }
)
TYPES_READ = {
    "rows": 12,
    "types": {
        "price": "number",
        "day": "datetime",
        "kind": "category",
        "ok": "boolean",
        "tiny": "number",
        "big": "number",
    },
    "values": {
        "price": [0.25, 7.25, 2.25],
        "day": [day.isoformat() for day in DAYS],
        "kind": ["k0", "k1", "k2"],
        "ok": [True, False, False],
    },
}


def written(write: Callable[[pa.Table, Any], None], table: pa.Table) -> Callable[[], bytes]:
    """The bytes that a writer of pyarrow makes of a table."""

    def make() -> bytes:
        file = io.BytesIO()
        write(table, file)
        return file.getvalue()

    return make


def as_stream(table: pa.Table, file: Any) -> None:
    """Write an Arrow stream."""
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def as_file(table: pa.Table, file: Any) -> None:
    """Write an Arrow file, which is Feather of version 2."""
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def as_npz(table: pa.Table, file: Any) -> None:
    """Write an array per column."""
    np.savez(
        file, **{name: np.array(table.column(name).to_pylist()) for name in table.column_names}
    )


def with_pandas_index(table: pa.Table, file: Any) -> None:
    """Write Parquet as pandas does for a frame whose index is not 0, 1, 2, …"""
    index = pa.array([f"r{i}" for i in range(table.num_rows)])
    indexed = table.append_column("__index_level_0__", index)
    about = {"index_columns": ["__index_level_0__"], "columns": [], "column_indexes": []}
    parquet.write_table(indexed.replace_schema_metadata({"pandas": json.dumps(about)}), file)


def json_lines(records: list[Any]) -> Callable[[], bytes]:
    """An object per line."""
    return lambda: "".join(f"{json.dumps(record)}\n" for record in records).encode()


NESTED_READ = {
    "rows": 12,
    "types": {"id": "category", "place.city": "category", "place.at.lat": "number", "y": "number"},
    "values": {"place.city": ["Rome", "Oslo"], "place.at.lat": [0.5, 7.5, 2.5], "y": [0, 1, 2]},
}
STRUCTS_READ = {
    "rows": 12,
    "types": {"place.city": "category", "place.size": "number", "y": "number"},
    "values": {"place.city": ["Rome", "Oslo"], "place.size": [0.5, 7.5]},
}
LISTS_READ = {
    "rows": 12,
    "types": {"embedding": "tensor", "y": "number"},
    "values": {"embedding": [[0.0, 1.0, 2.0], [0.5, 0.0, 2.0]]},
}

CASES = (
    Case(file="lines.jsonl", content=json_lines(RECORDS), **AS_PLAIN),
    Case(file="lines_nested.jsonl", content=json_lines(NESTED), **NESTED_READ),
    Case(
        file="lines_with_gaps.ndjson",  # keys that some objects lack
        content=json_lines(
            [{"a": i * 7 % 12 + 0.5} | ({"b": f"k{i % 2}"} if i % 3 else {}) for i in range(12)]
        ),
        rows=12,
        types={"a": "number", "b": "category"},
        missing={"b": 4},
    ),
    Case(
        file="lines_of_mixed_types.jsonl",
        content=json_lines(
            [{"a": "-" if i == 17 else i * 7 % 12 + 0.5, "y": i % 5} for i in range(60)]
        ),
        rows=60,
        types={"a": "number", "y": "number"},
        missing={"a": 1},
        findings=[Said("mostly_numeric", "a", 18)],
    ),
    Case(file="records.json", content=lambda: json.dumps(RECORDS, indent=1).encode(), **AS_PLAIN),
    Case(file="records_nested.json", content=lambda: json.dumps(NESTED).encode(), **NESTED_READ),
    Case(
        file="columns.json",  # an object of lists
        content=lambda: json.dumps(
            {name: [row[name] for row in RECORDS] for name in PLAIN_TYPES}
        ).encode(),
        **AS_PLAIN,
    ),
    Case(file="lines_named.json", content=json_lines(RECORDS), **AS_PLAIN),
    Case(
        file="json_line_broken.jsonl",
        content=lambda: json_lines(RECORDS)()[:-9],
        refused=r"line 16\b",
    ),
    Case(file="plain.parquet", content=written(parquet.write_table, TABLE), **AS_PLAIN),
    Case(file="structs.parquet", content=written(parquet.write_table, STRUCTS), **STRUCTS_READ),
    Case(
        file="lists_fixed.parquet", content=written(parquet.write_table, FIXED_LISTS), **LISTS_READ
    ),
    Case(
        file="lists_equal.parquet", content=written(parquet.write_table, EQUAL_LISTS), **LISTS_READ
    ),
    Case(
        file="lists_ragged.parquet",  # left out or joined, but said
        content=written(parquet.write_table, RAGGED_LISTS),
        rows=12,
        findings=[Said("nested", "tags")],
    ),
    Case(file="many_types.parquet", content=written(parquet.write_table, TYPES), **TYPES_READ),
    Case(file="index_of_pandas.parquet", content=written(with_pandas_index, TABLE), **AS_PLAIN),
    Case(file="stream.arrow", content=written(as_stream, TABLE), **AS_PLAIN),
    Case(file="file.arrow", content=written(as_file, TABLE), **AS_PLAIN),
    Case(file="structs.feather", content=written(as_file, STRUCTS), **STRUCTS_READ),
    Case(file="compressed.feather", content=written(feather.write_feather, TABLE), **AS_PLAIN),
    Case(file="plain.orc", content=written(orc.write_table, TABLE), **AS_PLAIN),
    Case(file="structs.orc", content=written(orc.write_table, STRUCTS), **STRUCTS_READ),
    Case(file="plain.npz", content=written(as_npz, TABLE), **AS_PLAIN),
)
