"""Where published files live: whole or not at all, and never outside the store's root."""

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from core.exceptions import NotFound, Unavailable
from core.settings import Settings

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"  # no room for `..`, for hidden or for absolute names
_KEY = re.compile(rf"{_PART}(/{_PART})*")

LEFTOVER_SECONDS = 24 * 3600  # nothing takes that long to be copied


class ArtifactStore(Protocol):
    """Immutable files and directories under keys such as `models/concrete/job_1-2`."""

    def put_file(self, key: str, source: Path) -> None:
        """Publish a copy of the file `source`; readers see all of it or nothing."""

    def put_directory(self, key: str, source: Path) -> None:
        """Publish a copy of the directory `source`; readers see all of it or nothing."""

    def local_path(self, key: str) -> Path:
        """Where the artifact can be read on this machine; raises `NotFound`."""

    def exists(self, key: str) -> bool:
        """Whether something is published under `key`."""

    def delete(self, key: str) -> None:
        """Forget what is published under `key`; nothing happens when there is nothing."""

    def check(self) -> None:
        """Raise `Unavailable` when the store cannot be written."""


class DirectoryStore:
    """A store in a local directory: copies to `.incoming`, then renames."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._incoming = self.root / ".incoming"

    def put_file(self, key: str, source: Path) -> None:
        self._publish(key, lambda staged: shutil.copyfile(source, staged))

    def put_directory(self, key: str, source: Path) -> None:
        self._publish(key, lambda staged: shutil.copytree(source, staged))

    def local_path(self, key: str) -> Path:
        path = self._path(key)
        if not path.exists():
            raise NotFound("artifact", key)
        return path

    def exists(self, key: str) -> bool:
        return self._path(key).exists()

    def delete(self, key: str) -> None:
        """Rename first, so that a reader never meets half of what is being removed."""
        path = self._path(key)
        with self._staged() as doomed, suppress(FileNotFoundError):
            path.rename(doomed)

    def check(self) -> None:
        with self._staged() as probe:
            probe.touch()

    def remove_leftovers(self) -> None:
        """Remove what processes that were killed while they published have left behind."""
        if self._incoming.is_dir():
            for path in self._incoming.iterdir():
                with suppress(FileNotFoundError):  # it has just been published
                    if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
                        _remove(path)

    def _publish(self, key: str, copy_to: Callable[[Path], object]) -> None:
        path = self._path(key)
        with self._staged() as staged:
            copy_to(staged)
            _flush(staged)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                raise FileExistsError(f"{key!r} is published already, and what is published stays")
            staged.rename(path)
            _flush_directory(path.parent)

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not an artifact key: give names joined by '/'")
        return self.root / key

    @contextmanager
    def _staged(self) -> Iterator[Path]:
        """A new path on the store's disk; what is there at the end is removed.

        Raises:
            Unavailable: when the disk refuses, because it is full or read only, say.
        """
        path = self._incoming / secrets.token_hex(12)
        try:
            self._incoming.mkdir(parents=True, exist_ok=True)
            yield path
        except FileExistsError:
            raise
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unavailable(f"the artifact store does not take files now: {reason}") from error
        finally:
            _remove(path)


def open_store(settings: Settings) -> ArtifactStore:
    """The store that the settings name."""
    store = DirectoryStore(settings.artifact_root)
    store.remove_leftovers()
    return store


def _flush(path: Path) -> None:
    """Bring a file, or a directory and all in it, to the disk before it is renamed into place."""
    if path.is_dir():
        for child in path.iterdir():
            _flush(child)
        _flush_directory(path)
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a file or directory if it is there and can be removed: nobody refers to it."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()
