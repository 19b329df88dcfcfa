"""Errors of disks that cannot be written now: full, over a quota, read only, broken.

They become `Unavailable`, so that clients try again and jobs wait.
"""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from core.exceptions import Unavailable

REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
RETRY_AFTER_SECONDS = 30  # a person or a job that ends may free space


@contextmanager
def on_disk(what: str) -> Iterator[None]:
    """Around a block that writes `what`: translate errors of its disk.

    Raises:
        Unavailable: the disk cannot be written; the message has the system's reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSALS and not isinstance(error, shutil.Error):  # copying a folder
            raise
        raise disk_refuses(what, error.strerror or str(error)) from error


def disk_refuses(what: str, reason: str) -> Unavailable:
    """The error for a disk that cannot be written."""
    return Unavailable(f"{what} cannot be written now: {reason}", RETRY_AFTER_SECONDS)
