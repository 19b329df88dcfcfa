"""Temporary files of a process, in a folder that is swept once the process is gone.

A lock on the folder tells the living from the dead: the kernel lets go of it however a process
ends, and no clock is asked.
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
    """A folder of this process's own under `root`; gone after `close`, or when another sweeps."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.path = root / secrets.token_hex(12)
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _held(root):  # nobody sweeps between these two
            self.path.mkdir()
            self._lock = _open(self.path)
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def remove_leftovers(self) -> None:
        """Remove the folders of processes that have ended without doing so."""
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
    """The folder's lock; with `LOCK_NB`, `BlockingIOError` if somebody has it."""
    lock = _open(folder)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | option)
        yield
    finally:
        os.close(lock)


def _open(folder: Path) -> int:
    return os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
