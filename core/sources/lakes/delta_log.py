"""What a Delta log may name: files of its table, and nothing else.

DuckDB reads data files through a file system that is closed to other folders. The log's own reader
does not: it would open deleted rows and parts of a checkpoint wherever the log says they are. So
the whole log is looked through before.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyarrow import ArrowException, parquet

from core.exceptions import NotParseable

ABSOLUTE = "p"  # the kind of a deletion vector whose path is a whole URI
IN_TABLE = "u"  # the kind whose path is a folder, or nothing, and a UUID
UUID_SIGNS = 20
# Of a file or a folder. The log's reader joins it to the table's URI, and so would follow a whole
# URI, a backslash, and what # or ? cut off.
_NAME = re.compile(r"[\w-]*(\.[\w-]+)*")
COLUMNS = ("add.deletionVector", "remove.deletionVector", "sidecar")
Action = dict[str, Any]


def check_log(log: Path) -> None:
    """Look through the files of a log.

    Raises:
        NotParseable: one is damaged, or names a file that is not in the table's folder.
    """
    for path in sorted(log.rglob("*")):
        try:
            for action in _actions(path):
                _check(action)
        except (ValueError, OSError, ArrowException, AttributeError, TypeError) as error:
            raise NotParseable(f"{path.name} of the table's log is damaged") from error


def _actions(path: Path) -> Iterator[Action]:
    if path.suffix == ".json":
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield json.loads(line, object_pairs_hook=_unique)
    elif path.suffix == ".parquet":
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=list(COLUMNS)):
                yield from batch.to_pylist()


def _unique(pairs: list[tuple[str, Any]]) -> Action:
    """An object without a key twice, of which two readers may take different ones."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _check(action: Action) -> None:
    for kind in ("add", "remove"):
        vector = (action.get(kind) or {}).get("deletionVector") or {}
        storage, path = vector.get("storageType"), str(vector.get("pathOrInlineDv"))
        if storage == ABSOLUTE or (storage == IN_TABLE and not _NAME.fullmatch(path[:-UUID_SIGNS])):
            raise _outside(path)
    sidecar = (action.get("sidecar") or {}).get("path")
    if sidecar is not None and not _NAME.fullmatch(sidecar):
        raise _outside(sidecar)


def _outside(path: object) -> NotParseable:
    return NotParseable(f"the Delta table names the file {str(path)[:200]!r}, outside its folder")
