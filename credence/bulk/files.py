"""Files of rows: of a path, a folder, a pattern or a Delta table, here or in a bucket."""

import glob
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any

from pyarrow import fs

from core.exceptions import UnsupportedFormat
from credence.bulk import lake
from credence.bulk.places import S3, filesystem, is_remote

PARQUET, CSV = (".parquet", ".pq"), (".csv",)


@dataclass(frozen=True)
class RowFile:
    """A file of rows.

    Attributes:
        path: absolute, or a URI.
        bytes, changed: by which another file of this name is known.
        values: of columns that a table keeps beside its files.
    """

    path: str
    bytes: int
    changed: int | None
    values: tuple[tuple[str, Any], ...] = ()

    @property
    def is_parquet(self) -> bool:
        return self.path.lower().endswith(PARQUET)


def find_files(source: str) -> list[RowFile]:
    """The files of a path, a folder, a Delta table or a pattern such as `rows/*.parquet`, by name.

    Raises:
        FileNotFoundError: there is none.
        UnsupportedFormat: one is neither Parquet nor CSV, or a table has deleted rows.
    """
    if lake.is_table(source):
        return [RowFile(*found) for found in lake.files(source)]
    infos = _in_bucket(source) if is_remote(source) else _on_disk(source)
    if not infos:
        raise FileNotFoundError(f"there is no file {source!r}")
    prefix = S3 if is_remote(source) else ""
    found = [RowFile(prefix + info.path, info.size, info.mtime_ns) for info in infos]
    for one in found:
        if not one.path.lower().endswith((*PARQUET, *CSV)):
            raise UnsupportedFormat(f"{one.path} is neither .parquet nor .csv")
    return sorted(found, key=lambda one: one.path)


def _on_disk(source: str) -> list[fs.FileInfo]:
    path = Path(source)
    if path.is_dir():
        found = _rows(path.iterdir())
    else:
        matches = glob.glob(source, recursive=True)  # noqa: PTH207 - which may be absolute
        found = [Path(one) for one in matches if Path(one).is_file()]
    return list(fs.LocalFileSystem().get_file_info([str(one.absolute()) for one in found]))


def _in_bucket(source: str) -> list[fs.FileInfo]:
    """A key, all files directly in a folder, or those that match: `*` also matches a slash."""
    files, path = filesystem(source)
    if "*" not in path and "?" not in path:
        info = files.get_file_info(path.rstrip("/"))
        if info.type is fs.FileType.File:
            return [info]
        inside = fs.FileSelector(path.rstrip("/"), allow_not_found=True)
        infos = {info.path: info for info in files.get_file_info(inside)}
        return [infos[str(one)] for one in _rows(map(PurePosixPath, infos))]
    fixed = path[: min(path.find(mark) for mark in "*?" if mark in path)].rpartition("/")[0]
    below = fs.FileSelector(fixed, recursive=True, allow_not_found=True)
    infos_below = files.get_file_info(below)
    matching = [info for info in infos_below if fnmatchcase(info.path, path)]
    return [info for info in matching if info.type is fs.FileType.File]


def _rows(paths: Iterable[Any]) -> list[Any]:
    """Those of a folder's files that have rows, and are not hidden."""
    found = [path for path in paths if path.suffix.lower() in (*PARQUET, *CSV)]
    return [path for path in found if not path.name.startswith((".", "_"))]
