"""A folder of this machine that predictions are written to."""

import errno
import os
import stat
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.destinations.descent import descend
from core.destinations.place import URI
from core.exceptions import Invalid

LOG = "_delta_log"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would block
_HIDDEN = ".part-"


@dataclass(frozen=True)
class LocalFolder:
    """A folder; no symbolic link is followed below `root`.

    Attributes:
        root: the folder that the operator, or the user of the command line, named.
        below: names of the folders from there.
    """

    root: Path
    below: tuple[str, ...] = ()

    @property
    def uri(self) -> str:
        return str(self.root.joinpath(*self.below))

    def table(self) -> tuple[str, Mapping[str, str]]:
        with self._folder(make=True) as folder:
            if LOG in _names(folder):
                with self._errors():
                    os.close(descend(self.root, (*self.below, LOG)))
        return str(self.root.resolve().joinpath(*self.below)), {}

    def names(self) -> set[str]:
        with suppress(FileNotFoundError), self._folder() as folder:
            return _names(folder)
        return set()

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        with self._folder() as folder:
            with self._errors(f"{self.uri}/{name}"):
                number = os.open(name, _OLD, dir_fd=folder)
            with os.fdopen(number, "rb") as file:
                if not stat.S_ISREG(os.fstat(number).st_mode):
                    raise Invalid([(URI, f"{self.uri}/{name} is not a plain file")])
                yield file

    @contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        hidden = f".{name}.{uuid.uuid4().hex}"
        with self._folder(make=True) as folder:
            with self._errors():
                number = os.open(hidden, _NEW, 0o666, dir_fd=folder)
            try:
                with os.fdopen(number, "wb") as file:
                    yield file
                    file.flush()
                    os.fsync(number)
                os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(hidden, dir_fd=folder)
                raise

    def clear(self) -> None:
        with self._folder() as folder:
            for name in _names(folder):
                if name.startswith(_HIDDEN):
                    with suppress(FileNotFoundError):
                        os.unlink(name, dir_fd=folder)

    @contextmanager
    def _folder(self, *, make: bool = False) -> Iterator[int]:
        with self._errors():
            number = descend(self.root, self.below, make=make)
        try:
            yield number
        finally:
            os.close(number)

    @contextmanager
    def _errors(self, path: str | None = None) -> Iterator[None]:
        """Around the opening of files and folders: errors name the path, and links."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            where = path or error.filename or self.uri
            reason = (error.strerror or str(error)).lower()
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                reason = "is a symbolic link or no folder: links are not followed"
            raise Invalid([(URI, f"{where}: {reason}")]) from error


def _names(folder: int) -> set[str]:
    return set(os.listdir(folder))
