"""The interface of artifact stores, and the form of their keys."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"  # no room for `..`, for hidden or for absolute names
_KEY = re.compile(rf"{_PART}(/{_PART})*")

LEFTOVER_SECONDS = 24 * 3600  # no publication takes that long


class ArtifactStore(Protocol):
    """Immutable files and directories under keys such as `models/concrete/job_1-2`.

    Every method raises `Unavailable` when the store does not work now.
    """

    def put_file(self, key: str, source: Path) -> None:
        """Publish a copy of the file `source`; readers see all of it or nothing."""

    def move_file(self, key: str, source: Path) -> None:
        """Publish the file `source`, which is not written again where the store is on its disk.

        Afterwards it may be gone from its place.
        """

    def put_directory(self, key: str, source: Path) -> None:
        """Publish a copy of the directory `source`; readers see all of it or nothing."""

    def local_path(self, key: str) -> Path:
        """Where the artifact can be read on this machine, now.

        Open it soon: a copy from a store elsewhere is removed when the cache is full.

        Raises:
            NotFound: when nothing is published under the key.
            CorruptArtifact: when the downloaded files do not match their checksums.
        """

    def exists(self, key: str) -> bool:
        """Whether something is published under `key`."""

    def children(self, key: str) -> Sequence[str]:
        """Sorted names of the direct children of `key`: artifacts, and prefixes of their keys."""

    def delete(self, key: str) -> None:
        """Delete what is published under `key` and below, if there is anything."""

    def check(self) -> None:
        """Raise `Unavailable` when the store cannot be written."""

    def remove_leftovers(self) -> None:
        """Remove unfinished files of processes that were killed while they published."""


def check_key(key: str) -> str:
    """Return the key, or raise `ValueError` that says what would be right."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not an artifact key: give names joined by '/'")
    return key


def published_already(key: str) -> FileExistsError:
    """The error of a second publication under the same key."""
    return FileExistsError(f"{key!r} is published already, and what is published stays")
