"""The interface of artifact stores, and the form of their keys."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"  # excludes `..`, hidden and absolute names
_KEY = re.compile(rf"{_PART}(/{_PART})*")

LEFTOVER_SECONDS = 24 * 3600  # longer than any publication takes


class ArtifactStore(Protocol):
    """Immutable files and directories under keys such as `models/concrete/job_1-2`.

    Every method raises `Unavailable` if the store does not work.
    """

    def put_file(self, key: str, source: Path) -> None:
        """Publish a copy of a file. Readers see all of it or nothing."""

    def move_file(self, key: str, source: Path) -> None:
        """Publish a file. It is moved, not copied, if the store is on the same disk."""

    def put_directory(self, key: str, source: Path) -> None:
        """Publish a copy of a directory. Readers see all of it or nothing."""

    def local_path(self, key: str) -> Path:
        """The path of the artifact, or of a copy of it, on this machine.

        Open it soon: copies are removed when the cache is full.

        Raises:
            NotFound: nothing is published under the key.
            CorruptArtifact: the downloaded files do not match their checksums.
        """

    def exists(self, key: str) -> bool:
        """Whether something is published under `key`."""

    def children(self, key: str) -> Sequence[str]:
        """Sorted names of the direct children of `key`: artifacts, and prefixes of their keys."""

    def delete(self, key: str) -> None:
        """Delete all artifacts under `key` and below, if there are any."""

    def check(self) -> None:
        """Raise `Unavailable` if the store cannot be written."""

    def free_bytes(self) -> int | None:
        """Bytes that are free on its disk; None for a bucket, which has no end."""

    def remove_leftovers(self) -> None:
        """Remove unfinished files of processes that were killed during a publication."""


def check_key(key: str) -> str:
    """Return the key, or raise `ValueError` if it does not have the form of one."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not an artifact key: give names joined by '/'")
    return key


def published_already(key: str) -> FileExistsError:
    """The error for a second publication under the same key."""
    return FileExistsError(f"{key!r} is published already: artifacts cannot be replaced")
