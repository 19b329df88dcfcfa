"""A folder for temporary files of a process. Other processes remove it if this one crashes.

Each process holds a lock on its folder. The kernel releases the lock when the process ends. So
abandoned folders are found without a clock.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOCK = ".lock"


class Scratch:
    """A new folder under `root`. `close` removes it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.path = root / secrets.token_hex(12)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _held(root):  # no other process removes the folder before it is locked
            self.path.mkdir()
            self._lock = _open(self.path)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def remove_leftovers(self) -> None:
        """Remove the folders of processes that ended without `close`."""
        with _held(self._root):
            for folder in self._root.iterdir():
                if folder.is_dir() and folder != self.path and _is_abandoned(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    with suppress(FileNotFoundError, BlockingIOError), _held(folder, fcntl.LOCK_NB):
        return True
    return False


@contextmanager
def _held(folder: Path, option: int = 0) -> Iterator[None]:
    """Hold the folder's lock. With `LOCK_NB`, raise `BlockingIOError` if another process has it."""
    lock = _open(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | option)
        yield
    finally:
        os.close(lock)


def _open(folder: Path) -> int:
    return os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
