"""The end of a service's process, in no time.

The interpreter's own end takes seconds: it joins threads that compile or send, and frees millions
of objects of torch, numba and DuckDB one by one, and longer on a busy machine. The kernel frees the
same at once.
"""

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn

import psutil


def leave(code: int) -> NoReturn:
    """End this process with an exit code, and all that it started, without the interpreter's end.

    Call it when everything that must stay is written and closed: databases, traces, scratch
    folders. Functions of `atexit` and `finally` blocks of other threads do not run.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader has gone, or the stream is closed
            stream.flush()
    abandon(code)


def abandon(code: int) -> NoReturn:
    """As `leave`, for a process in which a thread hangs: waits for no lock."""
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    os._exit(code)
