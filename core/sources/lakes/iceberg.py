"""Iceberg: the newest snapshot of a table without a catalogue, by DuckDB's reader.

First the metadata are copied, then the files that they name. A table names its files by whole URIs:
they must lie in the table's own folders `data` and `metadata`.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from core.exceptions import Invalid, NotParseable
from core.process.confined import Json
from core.sources import engine
from core.sources.budget import Budget
from core.sources.lakes.copies import copy_files
from core.sources.places.place import File, Place
from core.sources.rules import URI

METADATA = "metadata/"
_NEWEST = re.compile(r"v?(\d+)(?:-[^/]*)?\.metadata\.json")
SUFFIX = ".metadata.json"
EXTENSIONS = ["avro", "iceberg"]
AT = """(
    $table, version := $version, version_name_format := '%s%s.metadata.json',
    allow_moved_paths := true
)"""
FILES = "SELECT file_path FROM iceberg_metadata" + AT + " WHERE status <> 'DELETED'"  # noqa: S608
ROWS = "SELECT * FROM iceberg_scan" + AT  # noqa: S608


def is_table(files: Sequence[File], below: str) -> bool:
    """Whether the files below a folder are an Iceberg table."""
    return any(_number(file, below) is not None for file in files)


def read(place: Place, below: str, folder: Path, to: Path, budget: Budget) -> tuple[Json, int]:
    """Write the rows of a table to a Parquet file.

    Returns:
        The snapshot that was read (`snapshot_id`), and its number of files.

    Raises:
        Invalid: there is no table, or it names files that are not in its folder.
    """
    metadata = copy_files(place, place.files(below + METADATA, budget), below, folder, budget)
    numbered = [(n, f.path) for f in metadata if (n := _number(f, below)) is not None]
    if not numbered:
        raise Invalid([(URI, f"{below!r} is no Iceberg table: it has no {METADATA}")])
    version = max(numbered)[1].rpartition("/")[2].removesuffix(SUFFIX)
    given: Json = {"table": str(folder), "version": version, "max_bytes": budget.max_bytes}
    found, _ = engine.call(f"{__name__}:list_files", budget, "the Iceberg table", **given)
    wanted = [File(below + name, None, None) for name in found["files"]]
    copy_files(place, wanted, below, folder, budget)
    engine.call(f"{__name__}:write", budget, "the Iceberg table", to=str(to), **given)
    return {"snapshot_id": found["snapshot_id"]}, len(wanted)


def list_files(file: BinaryIO, table: str, version: str, max_bytes: int) -> Json:
    """In the child: the files of the newest snapshot, as paths in the table's folder, and its id.

    It also parses the metadata, which may have as many bytes as a data set.
    """
    about = _about(Path(table) / f"{METADATA}{version}{SUFFIX}")
    location = str(about.get("location", "")).rstrip("/")
    with engine.opened(table, max_bytes, EXTENSIONS) as connection:
        rows = connection.execute(FILES, {"table": table, "version": version}).fetchall()
    files = sorted({_within(location, str(row[0])) for row in rows})
    return {"files": files, "snapshot_id": str(about.get("current-snapshot-id"))}


def write(file: BinaryIO, table: str, version: str, max_bytes: int, to: str) -> Json:
    """In the child: write the rows of the newest snapshot to a Parquet file."""
    with engine.opened(table, max_bytes, EXTENSIONS) as connection:
        given = {"table": table, "version": version}
        connection.sql(ROWS, params=given).write_parquet(to)
    return {}


def _number(file: File, below: str) -> int | None:
    """Of a file of metadata: which one it is."""
    match = _NEWEST.fullmatch(file.path.removeprefix(below + METADATA))
    return None if match is None else int(match[1])


def _about(newest: Path) -> Json:
    try:
        about: Any = orjson.loads(newest.read_bytes())
    except (OSError, ValueError) as error:
        raise NotParseable(f"{newest.name} is not JSON") from error
    if not isinstance(about, dict):
        raise NotParseable(f"{newest.name} is not a JSON object")
    return about


def _within(location: str, path: str) -> str:
    name = path.removeprefix(location + "/")
    if name == path or ".." in name.split("/") or not name.startswith(("data/", METADATA)):
        raise NotParseable(f"the Iceberg table names the file {path[:200]!r}, outside its folder")
    return name
