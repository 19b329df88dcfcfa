"""A least-recently-used cache of artifacts on this machine."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from core.storage.staging import Staging, flush

GRACE_SECONDS = 60.0  # callers open a returned path within this time

_LOCKS = 64  # several artifacts may share a lock


class Cache:
    """A folder of files and directories. Several threads and processes may use it at once.

    An entry's modification time is the time of its last use. A rename adds or removes an entry; an
    open file stays readable.
    """

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._staging = Staging(root / ".incoming", "the cache of the artifact store")
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def get(self, name: str, fill: Callable[[Path], None]) -> Path:
        """The path of an entry. If it is missing, one thread calls `fill` to write it.

        Raises:
            Unavailable: the disk cannot be written.
        """
        path = self._root / name
        with self._locks[hash(name) % _LOCKS]:
            try:
                os.utime(path)
            except OSError:  # it is missing; `_add` raises if the disk does not work
                self._add(path, fill)
        return path

    def remove_leftovers(self) -> None:
        """Remove unfinished files of processes that were killed while they downloaded."""
        self._staging.remove_leftovers()

    def _add(self, path: Path, fill: Callable[[Path], None]) -> None:
        with self._staging.path() as staged:
            fill(staged)
            flush(staged)
            try:
                staged.rename(path)
            except OSError:
                if not path.is_dir():  # another process was faster
                    raise
        self._make_room()

    def _make_room(self) -> None:
        """Remove the least recently used entries, except those used within `GRACE_SECONDS`."""
        entries = sorted(filter(None, map(_entry, self._root.glob("[!.]*"))))
        excess = sum(size for _, size, _ in entries) - self._max_bytes
        for used_at, size, path in entries:
            if excess <= 0 or time.time() - used_at < GRACE_SECONDS:
                return
            with self._staging.path() as doomed, suppress(FileNotFoundError):
                path.rename(doomed)
            excess -= size


def _entry(path: Path) -> tuple[float, int, Path] | None:
    """Time of the last use, size in bytes, and path; None if it has just been removed."""
    try:
        files = path.rglob("*") if path.is_dir() else [path]
        return path.stat().st_mtime, sum(file.stat().st_size for file in files), path
    except FileNotFoundError:
        return None
