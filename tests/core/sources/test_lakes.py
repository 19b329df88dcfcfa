"""Many files, Delta and Iceberg tables, as their own libraries write them."""

import gzip
import json
import shutil
import struct
import zlib
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyroaring import BitMap

from core.exceptions import CredenceError, Invalid, NotParseable, TooLarge
from core.sources.budget import Budget
from core.sources.files import Fetched, fetch
from core.sources.rules import read_rules
from core.sources.source import UriSource

pytestmark = pytest.mark.stack  # each starts DuckDB or a reader in a child

TABLE = pa.table({"x": [1.0, 2.0, 3.0], "g": ["u", "v", "u"]})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


def read(lake: Path, path: str, max_bytes: int = 10**7, format_: str | None = None) -> Fetched:
    out = lake.parent / "out"
    out.mkdir()
    source = UriSource.model_validate({"uri": f"file://{lake}/{path}", "format": format_})
    rules = read_rules(f"file://{lake}/")
    return fetch(source, rules, {}, "", out, Budget(max_bytes, 600))


def test_parquet_files_are_joined_with_the_names_of_their_folders(lake: Path) -> None:
    for year in (2023, 2024):
        (lake / f"year={year}").mkdir()
        table = TABLE if year == 2023 else TABLE.select(["g"])  # x is missing there
        pq.write_table(table, lake / f"year={year}" / "part.parquet")
    pq.write_table(TABLE, lake / "_hidden.parquet")
    found = read(lake, "**/*.parquet")
    joined = pq.read_table(found.path)
    assert joined.column_names == ["x", "g", "year"]
    assert joined["year"].to_pylist() == [2023] * 3 + [2024] * 3
    assert joined["x"].to_pylist() == [1.0, 2.0, 3.0, None, None, None]
    assert (found.format, found.snapshot["num_files"]) == ("parquet", 2)


def test_csv_files_are_joined_under_one_header_even_if_packed(lake: Path) -> None:
    (lake / "a.csv").write_bytes(b"\xef\xbb\xbfx,y\r\n1,2")
    (lake / "b.csv.gz").write_bytes(gzip.compress(b"x,y\n3,4\n"))
    assert read(lake, "*.csv*").path.read_bytes() == b"x,y\n1,2\n3,4\n"


def test_files_of_two_tables_or_formats_are_refused_by_name(lake: Path) -> None:
    (lake / "a.csv").write_text("x,y\n1,2\n")
    (lake / "b.csv").write_text("y,x\n1,2\n")
    with pytest.raises(Invalid, match=r"b\.csv"):
        read(lake, "*.csv")
    shutil.rmtree(lake.parent / "out")
    (lake / "b.csv").unlink()
    pq.write_table(TABLE, lake / "b.parquet")
    with pytest.raises(Invalid, match=r"b\.parquet is Parquet"):
        read(lake, "*")


def test_a_packed_file_among_others_is_refused_by_name(lake: Path) -> None:
    (lake / "a.csv").write_text("x,y\n1,2\n")
    (lake / "b.csv.gz").write_bytes(gzip.compress(b"x,y\n" + b"0,0\n" * 2**18))
    with pytest.raises(TooLarge, match=r"^b\.csv\.gz: the file unpacks to more than 65536 bytes"):
        read(lake, "*", max_bytes=2**16)


def test_a_delta_table_is_read_at_its_newest_version(lake: Path) -> None:
    table = str(lake / "table")
    deltalake.write_deltalake(table, TABLE, partition_by=["g"])
    deltalake.write_deltalake(table, TABLE, partition_by=["g"], mode="append")
    deltalake.DeltaTable(table).delete("x = 2.0")
    found = read(lake, "table/")
    assert sorted(pq.read_table(found.path)["x"].to_pylist()) == [1.0, 1.0, 3.0, 3.0]
    assert (found.format, found.snapshot["version"]) == ("delta", 2)
    assert {p.name for p in found.path.parent.iterdir() if p.name.startswith("g=")} == {"g=u"}


@pytest.mark.parametrize("path", ["../secret.parquet", "{folder}/secret.parquet"])
def test_a_delta_table_that_names_other_files_is_refused(lake: Path, path: str) -> None:
    pq.write_table(TABLE, lake.parent / "secret.parquet")
    deltalake.write_deltalake(str(lake / "table"), TABLE)
    (log,) = (lake / "table" / "_delta_log").glob("*.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = path.format(folder=f"file://{lake.parent}")
    log.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(CredenceError, match=r"outside its folder|cannot be used|secret"):
        read(lake, "table/")


def with_vector(table: Path, vector: dict[str, object]) -> None:
    """Give the only file of a table a deletion vector, as the protocol writes it."""
    (log,) = (table / "_delta_log").glob("*.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7} | features
        if "add" in line:
            line["add"]["deletionVector"] = vector
    log.write_text("\n".join(map(json.dumps, lines)))


def test_deleted_rows_of_a_delta_table_are_left_out(lake: Path) -> None:
    """The row 1, in a file as the protocol describes it (Delta PROTOCOL.md, deletion vectors)."""
    deltalake.write_deltalake(str(lake / "table"), TABLE)
    data = struct.pack("<iqi", 1681511377, 1, 0) + BitMap([1]).serialize()
    checked = struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    name = "deletion_vector_1f7c01c2-1f7c-01c2-1f7c-01c21f7c01c2.bin"  # "a" twenty times, in z85
    (lake / "table" / name).write_bytes(b"\x01" + checked)
    vector = {"storageType": "u", "pathOrInlineDv": "a" * 20, "offset": 1}
    with_vector(lake / "table", vector | {"sizeInBytes": len(data), "cardinality": 1})
    assert pq.read_table(read(lake, "table/").path)["x"].to_pylist() == [1.0, 3.0]


@pytest.mark.parametrize(
    ("secret", "checkpoint"),
    [("file:///etc/passwd", False), ("http://169.254.169.254/latest", True)],
)
def test_deleted_rows_elsewhere_are_refused(lake: Path, secret: str, checkpoint: bool) -> None:
    """The log's reader would open the file, and say what its first byte is."""
    deltalake.write_deltalake(str(lake / "table"), TABLE)
    vector = {"storageType": "p", "pathOrInlineDv": secret, "offset": 1}
    vector |= {"sizeInBytes": 36, "cardinality": 1}
    with_vector(lake / "table", vector)
    if checkpoint:
        log = lake / "table" / "_delta_log"
        lines = [json.loads(line) for line in (log / f"{0:020d}.json").read_text().splitlines()]
        kept = [{key: line.get(key) for key in ("add", "metaData", "protocol")} for line in lines]
        for one in kept:
            (one["add"] or {}).pop("partitionValues", None)
            (one["metaData"] or {}).pop("configuration", None)
            ((one["metaData"] or {}).get("format") or {}).pop("options", None)
        pq.write_table(pa.Table.from_pylist(kept), log / f"{0:020d}.checkpoint.parquet")
        (log / f"{0:020d}.json").unlink()
    with pytest.raises(NotParseable, match="outside its folder"):
        read(lake, "table/")


def iceberg(lake: Path) -> Path:
    catalog = InMemoryCatalog("test", warehouse=f"file://{lake}")
    catalog.create_namespace("shop")
    table = catalog.create_table("shop.sales", schema=TABLE.schema)
    table.append(TABLE)
    table.append(TABLE)
    table.delete("x = 2.0")
    return Path(table.location().removeprefix("file://"))


def test_an_iceberg_table_is_read_at_its_newest_snapshot(lake: Path) -> None:
    table = iceberg(lake)
    found = read(lake, f"{table.relative_to(lake)}/")
    assert sorted(pq.read_table(found.path)["x"].to_pylist()) == [1.0, 1.0, 3.0, 3.0]
    newest = max(table.glob("metadata/*.metadata.json"))
    current = json.loads(newest.read_text())["current-snapshot-id"]
    assert (found.format, found.snapshot["snapshot_id"]) == ("iceberg", str(current))


def test_an_iceberg_table_that_names_other_files_is_refused(lake: Path) -> None:
    table = iceberg(lake)
    newest = max(table.glob("metadata/*.metadata.json"))
    about = json.loads(newest.read_text()) | {"location": f"file://{lake}/other"}
    newest.write_text(json.dumps(about))
    with pytest.raises(NotParseable, match="outside its folder"):
        read(lake, f"{table.relative_to(lake)}/")
