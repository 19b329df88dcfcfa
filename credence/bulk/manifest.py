"""What a folder of predictions is of, and which of its parts are there.

_manifest.json       model, options, files and parts: written first, and never changed
part-00000.parquet   a part: written whole under another name, then renamed
_SUCCESS             the numbers of rows: written last
"""

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from core.exceptions import Conflict
from credence.bulk.parts import Part

MANIFEST, SUCCESS = "_manifest.json", "_SUCCESS"


def begin(folder: Path, about: dict[str, Any], parts: Sequence[Part]) -> list[Part]:
    """The parts that are not there yet. Writes the manifest, unless a run before has written it.

    Raises:
        Conflict: the folder has other files, or predictions of other rows, options or models.
    """
    wanted = json.loads(json.dumps({**about, "parts": [asdict(part) for part in parts]}))
    path = folder / MANIFEST
    if path.exists():
        if differing := _differing(json.loads(path.read_text()), wanted):
            message = f"{folder} holds predictions with other {differing}: give an empty folder"
            raise Conflict(f"{message}, or the same {differing}")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        if there := [one.name for one in folder.iterdir() if not one.name.startswith(".")]:
            raise Conflict(f"{folder} has other files ({there[0]}, …): give an empty folder")
        write(path, wanted)
    return [part for part in parts if not (folder / part.file).exists()]


def end(folder: Path, parts: Sequence[Part]) -> int:
    """Write `_SUCCESS`. Returns the number of rows in all parts."""
    rows = {part.file: pq.read_metadata(folder / part.file).num_rows for part in parts}
    for left in folder.glob(".part-*"):  # of processes that were killed
        left.unlink(missing_ok=True)
    write(folder / SUCCESS, {"rows": sum(rows.values()), "parts": rows})
    return sum(rows.values())


@contextmanager
def published(path: Path) -> Iterator[Path]:
    """A hidden file to write, which gets its name once the block has ended without an error."""
    hidden = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield hidden
        with hidden.open("rb") as file:
            os.fsync(file.fileno())
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)


def write(path: Path, value: Any) -> None:
    """Write JSON, whole or not at all."""
    with published(path) as hidden:
        hidden.write_text(json.dumps(value, indent=1))


def _differing(there: dict[str, Any], wanted: dict[str, Any]) -> str | None:
    return next((name for name in wanted if there.get(name) != wanted[name]), None)
