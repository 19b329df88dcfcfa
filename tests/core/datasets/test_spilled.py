"""Parquet that is larger than the memory of its reader: the same data set, in bounded memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.datasets import apart
from core.datasets.apart import Workplace, ingested
from core.datasets.files.ingest import Given, ingest
from core.datasets.files.opening import opened
from core.datasets.files.options import ReadingOptions
from core.datasets.files.spilled import Spill
from core.datasets.formats.columnar import parquet_in_file
from core.datasets.understanding.fixes import ColumnFix
from core.exceptions import NotParseable, TooLarge
from core.process.memory_budget import MemoryBudget

GIBIBYTE = 2**30
MEBIBYTE = 2**20
MARGIN = 64 * MEBIBYTE  # for the reader of Parquet and the checks of a table
PARQUET = "application/vnd.apache.parquet"
FIXES = (ColumnFix(name="code", type="category"), ColumnFix(name="x", missing=("0.5",)))
OPTIONS = ReadingOptions()


def varied(rows: int) -> pa.Table:
    """Columns that are changed as they are understood: spellings, gaps, dates, an index."""
    random = np.random.default_rng(3)
    x = np.where(random.random(rows) < 0.1, np.nan, random.normal(size=rows).round(1))
    words = random.choice(["red", "Red ", "blue", "n/a", ""], rows)
    days = np.datetime64("2026-01-01") + random.integers(0, 300, rows)
    return pa.table(
        {
            "x": x,
            "code": random.integers(0, 9, rows),
            "word": pa.array(words, mask=random.random(rows) < 0.05),
            "day": days.astype(str),
            "at": days.astype("datetime64[us]"),
            "yes": random.random(rows) < 0.5,
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(random.normal(size=2 * rows)), 2),
            "level": pa.array(words).dictionary_encode(),
            "age": np.where(random.random(rows) < 0.02, -999, random.integers(18, 90, rows)),
            "__index_level_0__": np.arange(rows),
        }
    )


def wide(rows: int, columns: int) -> pa.Table:
    random = np.random.default_rng(5)
    numbers = {f"x{i}": random.random(rows, np.float32) for i in range(columns)}
    return pa.table(numbers | {"word": random.choice(["low", "high"], rows)})


def test_what_is_read_from_a_file_equals_what_is_read_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "varied.parquet"
    parquet.write_table(varied(30_000), path, row_group_size=7_000)
    found = {}
    for in_memory in (GIBIBYTE, 0):
        folder = tmp_path / str(in_memory)
        folder.mkdir()
        source = parquet_in_file(Spill(folder, in_memory))(path, GIBIBYTE, OPTIONS)
        assert (source.spill is None) == (in_memory > 0)
        found[in_memory] = ingest(source, FIXES)
    here, there = found[GIBIBYTE], found[0]
    assert there.table.equals(here.table)
    chunks = [[len(chunk) for chunk in one.table.column("x").chunks] for one in (here, there)]
    assert chunks[0] == chunks[1], "sums are rounded by chunk"
    assert (there.profiles, there.readings) == (here.profiles, here.readings)
    assert (there.reading, there.findings) == (here.reading, here.findings)
    assert {"case", "sentinel", "index"} <= {one.code for one in there.findings}
    assert len(list((tmp_path / "0").iterdir())) == 1 + there.table.num_columns


@pytest.mark.slow
@pytest.mark.stack
def test_a_table_larger_than_memory_is_read(tmp_path: Path) -> None:
    """The kernel ends an allocation beyond the child's memory: a third of the table."""
    path, table = tmp_path / "wide.parquet", wide(500_000, 200)
    parquet.write_table(table, path, row_group_size=20_000, use_dictionary=["word"])
    memory = table.nbytes // 3
    budget = MemoryBudget((memory + apart.CHILD_BYTES + MARGIN) * 4 // 3)
    at = Workplace(2 * GIBIBYTE, budget, tmp_path)
    with opened(path, PARQUET, at.max_bytes, tmp_path) as file, ingested(file, Given(), at) as got:
        assert got.table.num_rows == table.num_rows
        assert got.table.select(["x7"]).equals(table.select(["x7"]))
        assert [one.type for one in got.profiles] == ["number"] * 200 + ["category"]
    assert [one.name for one in tmp_path.iterdir()] == [path.name], "nothing is left behind"


def test_a_broken_page_or_too_large_a_table_is_named_as_such(tmp_path: Path) -> None:
    path = tmp_path / "broken.parquet"
    parquet.write_table(varied(30_000), path, compression="snappy", row_group_size=7_000)
    data = bytearray(path.read_bytes())
    data[200_000:201_000] = bytes([255]) * 1_000
    path.write_bytes(data)
    with pytest.raises(NotParseable, match="damaged"):
        parquet_in_file(Spill(tmp_path, 0))(path, GIBIBYTE, OPTIONS)
    parquet.write_table(varied(30_000), path)
    with pytest.raises(TooLarge, match="CREDENCE_MAX_DATASET_BYTES"):
        parquet_in_file(Spill(tmp_path, 0))(path, 2 * MEBIBYTE, OPTIONS)
