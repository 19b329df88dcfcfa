"""Disks that cannot be written now: full, over a quota, read only, broken.

Their errors become `Unavailable`, so that clients try again and jobs wait.
"""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from core.exceptions import Unavailable

REFUSALS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
RETRY_AFTER_SECONDS = 30  # people make room, or jobs that end


@contextmanager
def on_disk(what: str) -> Iterator[None]:
    """While `what` is written.

    Raises:
        Unavailable: if its disk cannot be written, with the system's reason.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSALS and not isinstance(error, shutil.Error):  # of a folder
            raise
        raise disk_refuses(what, error.strerror or str(error)) from error


def disk_refuses(what: str, reason: str) -> Unavailable:
    """The error for `what`, whose disk cannot be written."""
    return Unavailable(f"{what} cannot be written now: {reason}", RETRY_AFTER_SECONDS)
