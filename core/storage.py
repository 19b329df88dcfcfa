"""Where published files live: whole or not at all, and never outside the store's root."""

import os
import re
import secrets
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from core.exceptions import NotFound, Unavailable
from core.settings import Settings

_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")


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
        path, doomed = self._path(key), self._staging_path()
        try:
            path.rename(doomed)
        except FileNotFoundError:
            return
        _remove(doomed)

    def check(self) -> None:
        probe = self._staging_path()
        try:
            probe.touch()
            probe.unlink()
        except OSError as error:
            message = f"the artifact store {self.root} cannot be written: {error.strerror}"
            raise Unavailable(message) from error

    def _publish(self, key: str, copy_to: Callable[[Path], object]) -> None:
        path, staged = self._path(key), self._staging_path()
        try:
            copy_to(staged)
            _flush(staged)
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():  # keys are unique by construction; never replace what is published
                raise FileExistsError(f"the artifact {key!r} is published already")
            staged.rename(path)
            _flush_directory(path.parent)
        finally:
            _remove(staged)

    def _path(self, key: str) -> Path:
        """The place of `key`; its pattern has no room for `..`, absolute or hidden names."""
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is not an artifact key: give names joined by '/'")
        return self.root / key

    def _staging_path(self) -> Path:
        try:
            self._incoming.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"the artifact store {self.root} cannot be written: {error.strerror}"
            raise Unavailable(message) from error
        return self._incoming / secrets.token_hex(12)


def open_store(settings: Settings) -> ArtifactStore:
    """The store that the settings name."""
    return DirectoryStore(settings.artifact_root)


def _flush(path: Path) -> None:
    """Bring a file, or a directory and all in it, to the disk before it is renamed into place."""
    if path.is_dir():
        for child in path.iterdir():
            _flush(child)
        _flush_directory(path)
    else:
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
