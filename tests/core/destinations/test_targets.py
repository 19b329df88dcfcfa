"""Parquet folders and Delta tables have each part once, however often it is written."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.destinations.bucket import BucketFolder, Keys
from core.destinations.delta import OWNER, DeltaTable
from core.destinations.folder import LocalFolder
from core.destinations.parquet import ParquetFolder
from core.destinations.parts import part_name
from core.destinations.target import Target
from core.exceptions import Conflict

SCHEMA = pa.schema({"key": pa.int64(), "probability": pa.list_(pa.float64(), 2)})
ABOUT = {"model": "price", "files": [["a", 1]]}
PARTS = [part_name("run", number) for number in range(3)]


def tables(number: int) -> list[pa.Table]:
    """Two blocks of a part, of which a row is a number and a list of a fixed size."""
    rows = [{"key": 10 * number + k, "probability": [0.5, 0.5]} for k in range(4)]
    table = pa.Table.from_pylist(rows, SCHEMA)
    return [table.slice(0, 3), table.slice(3)]


def add(target: Target, number: int) -> int:
    return target.add(PARTS[number], tables(number), SCHEMA, lambda rows: None)


def rows_of(place: LocalFolder | BucketFolder) -> list[int]:
    uri, options = place.table()
    table = deltalake.DeltaTable(uri, storage_options=dict(options))
    return sorted(table.to_pyarrow_table()["key"].to_pylist())


@pytest.mark.parametrize("make", [ParquetFolder, DeltaTable])
def test_parts_are_added_once(
    make: Callable[[LocalFolder], ParquetFolder | DeltaTable], tmp_path: Path
) -> None:
    target, seen = make(LocalFolder(tmp_path, ("to",))), list[int]()
    target.check_free()
    target.begin(ABOUT, SCHEMA)
    target.begin(ABOUT, SCHEMA)
    assert target.there(PARTS) == {}
    assert target.add(PARTS[0], tables(0), SCHEMA, seen.append) == 4
    assert seen == [3, 1]
    assert not target.end(PARTS)
    for number in (0, 1, 2, 1):
        assert add(target, number) == 4
    assert target.there(PARTS) == dict.fromkeys(PARTS, 4)
    assert target.end(PARTS)
    found = sorted((tmp_path / "to").glob("part-*"))
    assert [path.name for path in found] == sorted(PARTS)
    keys_there = [10 * number + k for number in range(3) for k in range(4)]
    assert [key for path in found for key in pq.read_table(path)["key"].to_pylist()] == keys_there


def test_runs_append_to_a_table_of_the_same_columns_and_owner(tmp_path: Path) -> None:
    place = LocalFolder(tmp_path)
    first = DeltaTable(place, "ann")
    first.begin(ABOUT, SCHEMA)
    add(first, 0)
    later = part_name("later", 0)
    first.begin(ABOUT | {"files": []}, SCHEMA)
    first.add(later, tables(1), SCHEMA, lambda rows: None)
    assert rows_of(place) == [0, 1, 2, 3, 10, 11, 12, 13]
    table = deltalake.DeltaTable(str(tmp_path))
    assert table.metadata().configuration[OWNER] == "ann"
    for check in (
        DeltaTable(place, "ben").check_free,
        lambda: DeltaTable(place, "ben").begin({}, SCHEMA),
    ):
        with pytest.raises(Conflict, match="ben"):
            check()
    other = pa.schema({"key": pa.string(), "mean": pa.float64()})
    with pytest.raises(Conflict, match="key, mean, probability"):
        first.begin(ABOUT, other)


@pytest.mark.stack
def test_workers_at_a_time_add_a_part_once(keys: Keys) -> None:
    """Each of eight transactions is tried by two workers, in a bucket."""
    place = BucketFolder("lake", "together", keys)
    names = [part_name("together", number) for number in range(8)]

    def work(name: str) -> int:
        target = DeltaTable(place)
        target.begin(ABOUT, SCHEMA)
        return target.add(name, tables(int(name[5:10])), SCHEMA, lambda rows: None)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, [name for name in names for _ in range(2)])) == [4] * 16
    assert rows_of(place) == [10 * number + k for number in range(8) for k in range(4)]
    assert DeltaTable(place).end(names)


def test_a_part_that_was_written_but_not_added_is_written_again(tmp_path: Path) -> None:
    """A worker is killed between the file and its transaction."""
    target = DeltaTable(LocalFolder(tmp_path))
    target.begin(ABOUT, SCHEMA)
    (tmp_path / PARTS[0]).write_bytes(b"written")
    assert target.there(PARTS) == {}
    assert add(target, 0) == 4
    assert rows_of(LocalFolder(tmp_path)) == [0, 1, 2, 3]
