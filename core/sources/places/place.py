"""What all places of files do."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from core.sources.budget import Budget

CHUNK = 2**20


@dataclass(frozen=True)
class File:
    """A file at a place.

    Args:
        path: without its first slash, in the place.
        tag: changes with the content: an ETag, or the time of the last change.
    """

    path: str
    bytes: int | None
    tag: str | None


class Place(Protocol):
    """A folder of this machine, a bucket, or a host."""

    def files(self, below: str, budget: Budget) -> Iterator[File]:
        """All files whose path begins with `below`, which is empty or ends in /."""

    def fetch(self, file: File, to: Path, budget: Budget) -> File:
        """Copy a file. Returns it as it was read.

        Raises:
            Invalid: it does not exist (any more), changed meanwhile, or may not be read.
            TooLarge: the budget is used up.
            Unavailable: the place does not answer.
        """


def copy(source: BinaryIO, to: Path, budget: Budget) -> int:
    """Copy what can be read to a file. Returns the number of bytes."""
    num_bytes = 0
    to.parent.mkdir(parents=True, exist_ok=True)
    with to.open("wb") as out:
        while chunk := source.read(CHUNK):
            budget.take(len(chunk))
            num_bytes += len(chunk)
            out.write(chunk)
    return num_bytes
