"""What every artifact store does, and what its keys look like."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"  # no room for `..`, for hidden or for absolute names
_KEY = re.compile(rf"{_PART}(/{_PART})*")

LEFTOVER_SECONDS = 24 * 3600  # nothing takes that long to be published


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

        Open it soon: of a store elsewhere this is a copy, which makes room for others in time.

        Raises:
            NotFound: when nothing is published under the key.
            CorruptArtifact: when what came is not what was published.
        """

    def exists(self, key: str) -> bool:
        """Whether something is published under `key`."""

    def children(self, key: str) -> Sequence[str]:
        """What comes next in the keys under `key`, in order: artifacts, and what leads to some."""

    def delete(self, key: str) -> None:
        """Forget what is published under `key` and below; nothing happens if nothing is."""

    def check(self) -> None:
        """Raise `Unavailable` when the store cannot be written."""

    def remove_leftovers(self) -> None:
        """Remove what processes that were killed while they published have left behind."""


def check_key(key: str) -> str:
    """Return the key, or raise `ValueError` that says what would be right."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"{key!r} is not an artifact key: give names joined by '/'")
    return key


def published_already(key: str) -> FileExistsError:
    """The error of a second publication under the same key."""
    return FileExistsError(f"{key!r} is published already, and what is published stays")
