"""Opens folders name by name, without following symbolic links."""

import os
from collections.abc import Sequence
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def descend(root: Path, names: Sequence[str], *, make: bool = False) -> int:
    """The descriptor of a folder. Each name is opened in the folder before, and is no link.

    So a link that appears between a check and the work leads nowhere either.

    Args:
        root: whose own links are followed.
        make: whether folders below it that do not exist are made.

    Raises:
        OSError: `filename` is the folder that cannot be opened.
    """
    here = root
    try:
        number = os.open(root.resolve(), FOLDER)
    except OSError as error:
        error.filename = str(root)
        raise
    for name in names:
        here /= name
        try:
            if make:
                _make(name, number)
            inner = os.open(name, FOLDER, dir_fd=number)
        except OSError as error:
            error.filename = str(here)
            raise
        finally:
            os.close(number)
        number = inner
    return number


def _make(name: str, inside: int) -> None:
    try:
        os.mkdir(name, dir_fd=inside)
    except FileExistsError:
        return
