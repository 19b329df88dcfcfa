"""Small files that need much memory: read in a child, or spilled to a file."""

import gzip
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from core.datasets import apart
from core.datasets.apart import Workplace, ingested
from core.datasets.files.ingest import Given, Ingested, ingest
from core.datasets.files.opening import opened
from core.datasets.files.options import DatasetOptions, ReadingOptions
from core.datasets.files.spilled import Spill
from core.datasets.formats.columnar import parquet_in_file
from core.datasets.understanding.fixes import ColumnFix
from core.exceptions import NotParseable, TooLarge
from core.process.memory_budget import MemoryBudget
from tests.core.datasets.reading import read

GIBIBYTE = 2**30
GIVEN = Given(DatasetOptions(decimal=","), (ColumnFix(name="b", type="category"),))


@pytest.fixture
def memory() -> MemoryBudget:
    return MemoryBudget(4 * GIBIBYTE)


@contextmanager
def understood(
    path: Path, memory: MemoryBudget, given: Given = GIVEN, type_: str = "text/csv"
) -> Iterator[Ingested]:
    at = Workplace(GIBIBYTE, memory, path.parent)
    with opened(path, type_, at.max_bytes, path.parent) as file, ingested(file, given, at) as found:
        yield found


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    path = tmp_path / "mixed.csv"
    rows = (f"{i},5;{i % 7};2026-01-{1 + i % 28:02d};x{i % 3}" for i in range(500))
    path.write_text("a;b;day;word\n" + "\n".join(rows) + "\n")
    return path


def test_a_child_finds_what_is_found_here(
    mixed: Path, memory: MemoryBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    with understood(mixed, memory) as here:
        assert here.file is None
        monkeypatch.setattr(apart, "SMALL_BYTES", 0)
        with understood(mixed, memory) as there:
            assert there.file is not None
            assert there.table.equals(here.table)
            assert there.table.num_rows == 500
            assert (there.profiles, there.readings) == (here.profiles, here.readings)
            assert (there.reading, there.findings) == (here.reading, here.findings)
        assert not there.file.exists(), "removed with its folder"


def test_a_small_file_of_much_goes_to_a_child(tmp_path: Path, memory: MemoryBudget) -> None:
    path, zeros = tmp_path / "zeros.npz", np.zeros(2**21)
    np.savez_compressed(path, a=zeros)
    assert path.stat().st_size < apart.SMALL_BYTES
    with understood(path, memory, Given(), "application/x-npz") as found:
        assert found.file is not None
        assert found.table.equals(pa.table({"a": zeros}))


@pytest.mark.stack
def test_what_takes_more_than_its_share_is_refused_and_frees_it(tmp_path: Path) -> None:
    path, small = tmp_path / "zeros.csv.gz", MemoryBudget(2**29)
    path.write_bytes(gzip.compress(b"a\n" + b"0\n" * 40_000_000, 1))
    with pytest.raises(TooLarge), understood(path, small, Given()):
        pass
    assert small.reserved() == {"uploads": 0}
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_parquet_with_shared_prefixes_goes_to_a_child(tmp_path: Path, memory: MemoryBudget) -> None:
    """Each string is the one before and a letter: 45 times as long as the page."""
    path, table = tmp_path / "prefixes.parquet", pa.table({"a": ["x" * i for i in range(1, 600)]})
    for encoding, in_child in (("DELTA_BYTE_ARRAY", True), ("PLAIN", False)):
        parquet.write_table(table, path, use_dictionary=False, column_encoding={"a": encoding})
        given = Given()
        with understood(path, memory, given, "application/vnd.apache.parquet") as found:
            assert (found.file is not None) == (in_child or path.stat().st_size > apart.SMALL_BYTES)
            assert found.table.column("a").to_pylist() == table.column("a").to_pylist()


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


LIMIT = 2**26


@pytest.mark.stack
@pytest.mark.parametrize("write", [parquet.write_table, orc.write_table])
def test_small_nested_files_do_not_become_large(tmp_path: Path, write: Callable[..., Any]) -> None:
    """Half a gigabyte and more, in a child that stops."""
    text = pa.DictionaryArray.from_arrays(np.zeros(2**13, np.int32), ["x" * 2**17]).cast("string")
    column = pa.StructArray.from_arrays([text], ["a"])
    buffer = io.BytesIO()
    write(pa.table({"s": column}), buffer, compression="zstd")
    assert len(buffer.getvalue()) < 2**21
    path = tmp_path / "file"
    path.write_bytes(buffer.getvalue())
    with (
        pytest.raises((TooLarge, NotParseable)),
        opened(path, "application/octet-stream", LIMIT) as file,
    ):
        read(file, LIMIT)
