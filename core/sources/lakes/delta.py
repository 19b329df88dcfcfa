"""Delta Lake: the newest version of a table, by DuckDB's reader of its log.

First the log is copied, then the files that it names, and no others: a table keeps the files of its
older versions beside those of the newest.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from core.exceptions import Invalid, NotParseable
from core.process.confined import Json
from core.sources import engine
from core.sources.budget import Budget
from core.sources.lakes.copies import copy_files
from core.sources.lakes.delta_log import check_log
from core.sources.places.place import CHUNK, File, Place
from core.sources.rules import URI

LOG = "_delta_log/"
_VERSION = re.compile(r"(\d{20})\.(?:json|checkpoint\..*parquet)")
_DELETED = ".bin"  # rows that are deleted, beside the files that have them
VECTORS = b"deletionVector"


def is_table(files: Sequence[File], below: str) -> bool:
    """Whether the files below a folder are a Delta table."""
    return any(file.path.startswith(below + LOG) for file in files)


def read(place: Place, below: str, folder: Path, to: Path, budget: Budget) -> tuple[Json, int]:
    """Write the rows of a table to a Parquet file.

    Args:
        below: the table's folder at its place.

    Returns:
        The snapshot that was read (`version`), and its number of files.

    Raises:
        Invalid: there is no table, or it names files that are not in its folder.
    """
    log = copy_files(place, place.files(below + LOG, budget), below, folder, budget)
    versions = [m[1] for m in (_VERSION.fullmatch(f.path.rpartition("/")[2]) for f in log) if m]
    if not versions:
        raise Invalid([(URI, f"{below!r} is no Delta table: it has no {LOG}")])
    if any(_has_vectors(folder / file.path.removeprefix(below)) for file in log):
        beside = (file for file in place.files(below, budget) if file.path.endswith(_DELETED))
        copy_files(place, beside, below, folder, budget)
    table: Json = {"table": str(folder), "version": int(max(versions))}
    table |= {"max_bytes": budget.max_bytes}
    found, _ = engine.call(f"{__name__}:list_files", budget, "the Delta table", **table)
    wanted = [File(below + name, None, None) for name in found["files"]]
    copy_files(place, wanted, below, folder, budget)
    engine.call(f"{__name__}:write", budget, "the Delta table", to=str(to), **table)
    return {"version": table["version"]}, len(found["files"])


def list_files(file: BinaryIO, table: str, version: int, max_bytes: int) -> Json:
    """In the child: the files of a version, as paths in the table's folder."""
    check_log(Path(table) / LOG)
    with engine.opened(table, max_bytes, ["delta"]) as connection:
        query = "SELECT * FROM delta_list_files($table, version := $version)"
        rows = connection.execute(query, {"table": table, "version": version}).fetchall()
    names = [_within(table, str(row[0])) for row in rows]
    return {"files": sorted(names)}


def write(file: BinaryIO, table: str, version: int, max_bytes: int, to: str) -> Json:
    """In the child: write the rows of a version to a Parquet file."""
    with engine.opened(table, max_bytes, ["delta"]) as connection:
        given = {"table": table, "version": version}
        query = "SELECT * FROM delta_scan($table, version := $version)"
        connection.sql(query, params=given).write_parquet(to)
    return {}


def _has_vectors(path: Path) -> bool:
    """Whether a file of the log names deleted rows. It is read in parts: it may have gigabytes."""
    before = b""
    with path.open("rb") as file:
        while part := file.read(CHUNK):
            if VECTORS in before + part:
                return True
            before = part[-len(VECTORS) :]
    return False


def _within(table: str, path: str) -> str:
    name = path.removeprefix("file://").removeprefix(table + "/")
    if name == path or ".." in name.split("/") or name.startswith("/"):
        raise NotParseable(f"the Delta table names the file {path[:200]!r}, outside its folder")
    return name
