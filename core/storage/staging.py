"""Write files to a temporary path, flush them to the disk, then rename them into place."""

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.exceptions import Unavailable
from core.storage.protocol import LEFTOVER_SECONDS


class Staging:
    """A folder for files that are being written.

    Args:
        owner: the name of the store or cache, for errors of the disk.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self._folder = folder
        self._owner = owner

    @contextmanager
    def path(self) -> Iterator[Path]:
        """A new path. If a file is still there at the end, it is removed.

        Raises:
            Unavailable: the disk cannot be written, for example because it is full.
        """
        path = self._folder / secrets.token_hex(12)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            yield path
        except FileExistsError:
            raise
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise Unavailable(f"{self._owner} does not take files now: {reason}") from error
        finally:
            _remove(path)

    def remove_leftovers(self) -> None:
        """Remove old files, left by processes that were killed."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                with suppress(FileNotFoundError):  # it has just been published
                    if time.time() - path.stat().st_mtime > LEFTOVER_SECONDS:
                        _remove(path)


def flush(path: Path) -> None:
    """Flush a file, or a directory with its content, to the disk."""
    if path.is_dir():
        for child in path.iterdir():
            flush(child)
        flush_directory(path)
        return
    with path.open("rb") as file:
        os.fsync(file.fileno())


def flush_directory(path: Path) -> None:
    """Flush a directory's list of names to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    """Remove a file or directory; ignore errors."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()
