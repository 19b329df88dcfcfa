"""Files in a child: the same data set as read here, within its memory, and nothing left behind."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.datasets import apart
from core.datasets.apart import Workplace, ingested
from core.datasets.files.ingest import Given, Ingested
from core.datasets.files.opening import opened
from core.datasets.files.options import DatasetOptions
from core.datasets.understanding.fixes import ColumnFix
from core.exceptions import TooLarge
from core.process.memory_budget import MemoryBudget

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


def test_a_small_file_that_unpacks_to_much_goes_to_a_child(
    tmp_path: Path, memory: MemoryBudget
) -> None:
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
