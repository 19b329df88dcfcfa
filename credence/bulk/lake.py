"""The files of a Delta table's newest version."""

import posixpath
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from pyarrow import fs

from core.destinations.delta import deltalake_library
from core.exceptions import UnsupportedFormat
from credence.bulk.places import delta_options, filesystem, is_remote

LOG = "_delta_log"
MAPPED = "delta.columnMapping.mode"
PARTITION = "partition."
Found = tuple[str, int, None, tuple[tuple[str, Any], ...]]


def is_table(source: str) -> bool:
    """Whether a folder is a Delta table."""
    if "*" in source or "?" in source:
        return False
    files, path = filesystem(source)
    log = files.get_file_info(posixpath.join(path.rstrip("/"), LOG))
    return log.type is fs.FileType.Directory


def files(source: str) -> list[Found]:
    """Path, bytes, no time and the partition's values of each file, by name.

    Raises:
        UnsupportedFormat: rows are deleted in place, or columns have other names in the files.
    """
    table = deltalake_library().DeltaTable(source, storage_options=delta_options(source))
    if table.metadata().configuration.get(MAPPED, "none") != "none":
        raise UnsupportedFormat(f"the Delta table {source} maps names of columns: use Spark")
    if any(batch.num_rows for batch in table.deletion_vectors()):
        message = "has deleted rows in its files: run OPTIMIZE, or use Spark"
        raise UnsupportedFormat(f"the Delta table {source} {message}")
    return sorted(_files(source, table), key=lambda found: found[0])


def _files(source: str, table: Any) -> Iterator[Found]:
    from pyarrow import table as to_arrow  # noqa: PLC0415

    folder = source.rstrip("/") if is_remote(source) else _absolute(source)
    for action in to_arrow(table.get_add_actions(flatten=True)).to_pylist():
        values = {
            name.removeprefix(PARTITION): value
            for name, value in action.items()
            if name.startswith(PARTITION)
        }
        path = f"{folder}/{unquote(action['path'])}"
        yield path, action["size_bytes"], None, tuple(values.items())


def _absolute(path: str) -> str:
    return posixpath.abspath(path)
