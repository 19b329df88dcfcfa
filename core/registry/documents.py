"""Bounds on the JSON of an archive, checked before it is parsed.

A parser makes an object of up to 100 bytes of each value, so that `[[],[],…]` takes 25 times its
bytes. Values are counted by the characters before them, which takes a millisecond per megabyte.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.exceptions import Invalid
from models.artifact.files import CARD, MANIFEST, MODEL

ORIGIN = "origin.json"
_BEFORE_VALUES = b",[{"  # in texts, too, which then count as more


@dataclass(frozen=True)
class Bounds:
    """The most that a file or a description may have."""

    num_bytes: int
    values: int


BOUNDS = {
    # Training writes tens of kilobytes: 200 epochs, and 50 levels of each column.
    CARD: Bounds(4 * 2**20, 250_000),
    # Its history has seven values for each of at most 100,000 epochs.
    MODEL: Bounds(16 * 2**20, 1_000_000),
    MANIFEST: Bounds(2**16, 2_000),
    ORIGIN: Bounds(2**12, 10),
}
OF_JSON = 12  # bytes of memory for each byte of a training's JSON
# The database's row of a version, which lists of models read, too.
DESCRIPTION = Bounds(2 * 2**20, 100_000)


def check_documents(directory: Path) -> None:
    """Check every JSON file of an unpacked archive.

    Raises:
        Invalid: one has more bytes, or more values, than it may; the message names the limit.
    """
    for name, bounds in BOUNDS.items():
        path = directory / name
        if path.is_file():
            check_length(name, path.stat().st_size)
            _check_values(path.read_bytes(), bounds, f"/{name}")


def loaded_bytes(directory: Path) -> int:
    """The memory that an artifact takes while it is read: its tensors twice, and its JSON."""
    sizes = {path.name: path.stat().st_size for path in directory.iterdir()}
    documents = sum(size for name, size in sizes.items() if name.endswith(".json"))
    return 2 * sum(sizes.values()) + OF_JSON * documents


def check_length(name: str, num_bytes: int) -> None:
    """Raise `Invalid` if the JSON file `name` may not have so many bytes."""
    most = BOUNDS[name].num_bytes
    if num_bytes > most:
        raise Invalid([(f"/{name}", f"has {num_bytes} bytes: at most {most} are read")])


def check_description(description: Mapping[str, Any]) -> None:
    """Raise `Invalid` if a version's description is too large for the database.

    The message names the largest of its fields.
    """
    sizes = {name: len(_encoded(value)) for name, value in description.items()}
    largest = max(sizes, key=lambda name: sizes[name])
    place = f"/{MODEL}/{largest}"
    if sum(sizes.values()) > DESCRIPTION.num_bytes:
        message = (
            f"has {sizes[largest]} bytes: what a version's description is made of may have "
            f"{DESCRIPTION.num_bytes} in all"
        )
        raise Invalid([(place, message)])
    _check_values(_encoded(dict(description)), DESCRIPTION, place)


def _encoded(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _check_values(data: bytes, bounds: Bounds, place: str) -> None:
    count = sum(data.count(byte) for byte in _BEFORE_VALUES)
    if count > bounds.values:
        message = f"has about {count} values: at most {bounds.values} are read"
        raise Invalid([(place, message)])
