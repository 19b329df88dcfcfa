"""Files in a folder of this machine.

Every folder on the way is opened by its name in the one before, and no symbolic link is followed:
so a link that appears between a check and a read leads nowhere either.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from core.destinations.descent import FOLDER, descend
from core.exceptions import Invalid
from core.sources.budget import Budget, check_number
from core.sources.places.place import File, copy
from core.sources.rules import URI
from core.sources.uris import Uri

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would block


class Folder:
    """The files below the entry of `CREDENCE_SOURCES` that lets them be read."""

    def __init__(self, entry: Uri) -> None:
        """Links on the way to the operator's own folder are followed."""
        self._root = entry.segments[:-1]
        self._path = Path("/", *self._root)

    def files(self, below: str, budget: Budget) -> Iterator[File]:
        top = tuple(part for part in below.split("/") if part)
        with self._opened(top[len(self._root) :]) as folder:
            yield from _walk(folder, below, budget, [0])

    def fetch(self, file: File, to: Path, budget: Budget) -> File:
        *folders, name = file.path.split("/")[len(self._root) :]
        with self._opened(tuple(folders)) as folder:
            try:
                number = os.open(name, _FILE, dir_fd=folder)
            except OSError as error:
                raise _refused(file.path, error) from error
            before = os.fstat(number)
            if not stat.S_ISREG(before.st_mode):
                os.close(number)
                raise Invalid([(URI, f"file:///{file.path} is not a plain file")])
            with os.fdopen(number, "rb") as source:
                copy(source, to, budget)
                if _changed(before) != _changed(os.fstat(number)):
                    raise Invalid([(URI, f"file:///{file.path} changed while it was read")])
        return _file(file.path, before)

    @contextmanager
    def _opened(self, folders: tuple[str, ...]) -> Iterator[int]:
        try:
            number = descend(self._path, folders)
        except OSError as error:
            raise _refused(str(error.filename)[1:], error, folder=True) from error
        try:
            yield number
        finally:
            os.close(number)


def _walk(folder: int, path: str, budget: Budget, count: list[int]) -> Iterator[File]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    _ = budget.left_seconds
    for entry in entries:
        here = path + entry.name
        if entry.is_dir(follow_symlinks=False):
            inner = os.open(entry.name, FOLDER, dir_fd=folder)
            try:
                yield from _walk(inner, f"{here}/", budget, count)
            finally:
                os.close(inner)
        elif not entry.is_dir():  # a link to a file is a file, which `fetch` refuses by name
            count[0] += 1
            check_number(count[0])
            yield _file(here, os.stat(entry.name, dir_fd=folder, follow_symlinks=False))


def _file(path: str, found: os.stat_result) -> File:
    changed = datetime.fromtimestamp(found.st_mtime, UTC).isoformat()
    return File(path, found.st_size, changed)


def _changed(found: os.stat_result) -> tuple[int, int]:
    return found.st_size, found.st_mtime_ns


def _refused(path: str, error: OSError, *, folder: bool = False) -> Invalid:
    reason = (error.strerror or str(error)).lower()
    if isinstance(error, FileNotFoundError):
        reason = "does not exist"
    elif error.errno == errno.ELOOP or (folder and isinstance(error, NotADirectoryError)):
        reason = "is a symbolic link or no folder: links are not followed"
    return Invalid([(URI, f"file:///{path}: {reason}")])
