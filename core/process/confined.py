"""Runs a function in a child process that may take so much memory and time, and no more.

For libraries that parse untrusted files and may allocate what those files ask for, or end the
process. The child has no secrets in its environment, and ends with its parent.
"""

import errno
import importlib
import json
import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from core.exceptions import (
    CredenceError,
    Invalid,
    NotParseable,
    TooLarge,
    Unavailable,
    UnsupportedFormat,
)
from core.process.parent import stop_with_stdin

Json = dict[str, Any]

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "HOME")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_IO_THREADS")
TOO_LARGE, DISK = "too large", "disk"
ANSWER_BYTES = 2**25  # of JSON, which this process parses
# glibc gives back memory of this size as soon as it is freed. By itself it raises the limit after
# the first such block: then Arrow, which sets aside the bytes of a whole block of CSV for each
# column, left 1.2 GB of gaps with 5,000 columns, and now 0.26 GB, for 6 % more processor time.
MAPPED_ALONE = 2**17
# For tables larger than memory. Else their columns leave gaps: measured, as much as the table.
# It takes up to twice the time.
MAPPED_ALONE_FROM_FILES = 2**15
ADVICE = "(CREDENCE_MEMORY_BYTES, CREDENCE_MAX_DATASET_BYTES): send its rows in several files"
NICENESS = 5  # others' requests go before a file, which still gets a quarter of a busy core
RAISED = {one.__name__: one for one in (NotParseable, TooLarge, UnsupportedFormat, Unavailable)}


@dataclass(frozen=True)
class Limits:
    """What a child may take.

    Args:
        memory_bytes: of address space, beyond what it has after its imports.
        output_bytes: that it may write.
        cpu_seconds: of all its threads.
        mapped_bytes: of files that it maps. They take address space and no memory: if there are
            any, `memory_bytes` also limits the memory that is not of files.
    """

    memory_bytes: int
    output_bytes: int
    cpu_seconds: int = 120
    mapped_bytes: int = 0


@dataclass(frozen=True)
class Outcome:
    """What the function returned, and the bytes that it wrote."""

    answer: Json
    output: memoryview


def run(
    function: str,
    arguments: Json,
    limits: Limits,
    what: str,
    output: Path | None = None,
    *,
    advice: str = ADVICE,
) -> Outcome:
    """Call `module:name` in a child with an open file, and the arguments as keywords.

    Args:
        arguments: in JSON.
        what: the name of what is read, for messages.
        output: the file that is written; in memory if None.
        advice: what to do if it takes too much memory, for messages.

    Raises:
        NotParseable, Invalid, TooLarge, UnsupportedFormat, Unavailable: as the function raises
            them.
        OSError: the disk on which the function writes is full or broken.
        TooLarge: a limit was reached.
        NotParseable: the child broke.
    """
    with (
        _anonymous_file() if output is None else output.open("w+b") as file,
        _anonymous_file() as given,  # a command line has at most 128 kB, and others can read it
    ):
        given.write(_packed(arguments))
        given.seek(0)
        command = [sys.executable, "-P", "-m", __name__, function, json.dumps(vars(limits))]
        process = subprocess.Popen(  # noqa: S603 - this interpreter, on our own module
            [*command, str(given.fileno()), str(file.fileno())],
            stdin=subprocess.PIPE,  # it closes when this process ends
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[given.fileno(), file.fileno()],
            env=_environment(limits),
        )
        with process:
            assert process.stdout is not None
            answer = process.stdout.read(ANSWER_BYTES)
            if process.stdout.read(1):
                process.kill()
                raise TooLarge(f"{what} has more to tell than {ANSWER_BYTES} bytes")
        return Outcome(_answer(answer, process.returncode, limits, what, advice), _mapped(file))


def _answer(answer: bytes, status: int, limits: Limits, what: str, advice: str) -> Json:
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TooLarge(f"{what} takes more than {limits.cpu_seconds} seconds to be read")
    if status == -signal.SIGABRT:
        raise _too_large(limits, what, advice)
    try:
        found: Json = json.loads(answer)
    except ValueError as error:
        raise NotParseable(f"{what} is damaged: its reader broke") from error
    if "raised" not in found:
        return found
    if found["raised"] == TOO_LARGE:
        raise _too_large(limits, what, advice)
    if found["raised"] == DISK:
        raise OSError(found["errno"], os.strerror(found["errno"]))
    if found["raised"] == "Invalid":
        raise Invalid([(path, message) for path, message in found["errors"]])
    raise RAISED.get(found["raised"], NotParseable)(found["message"])


def _too_large(limits: Limits, what: str, advice: str) -> TooLarge:
    most = f"{what} takes more than {limits.memory_bytes} bytes of memory while it is read"
    if limits.output_bytes:
        most += f", or gives more than {limits.output_bytes} bytes"
    return TooLarge(f"{most} {advice}")


def _environment(limits: Limits) -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    modules = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    threads = dict.fromkeys(ONE_THREAD, "1")
    # One arena: glibc reserves 128 MB of address space for that of each further thread, so that
    # the limit was reached with a quarter of the memory, or not, by how the threads ran.
    allocator = {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": str(
            MAPPED_ALONE_FROM_FILES if limits.mapped_bytes else MAPPED_ALONE
        ),
    }
    return kept | threads | allocator | {"PYTHONPATH": modules}


def _anonymous_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("credence"), "w+b")
    return tempfile.TemporaryFile()


def _mapped(file: IO[bytes]) -> memoryview:
    size = os.fstat(file.fileno()).st_size
    if not size:
        return memoryview(b"")
    return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def main(arguments: Sequence[str]) -> None:
    """The child: set the limits, call the function, write what it returns or raises."""
    stop_with_stdin(0)
    os.nice(NICENESS)
    function, limits, given, output = arguments
    module, _, name = function.partition(":")
    call = getattr(importlib.import_module(module), name)
    _set_limits(Limits(**json.loads(limits)))
    try:
        with os.fdopen(int(given), "rb") as about, os.fdopen(int(output), "wb") as file:
            answer = call(file=file, **json.load(about))
        reply = _packed(answer)  # what this takes counts, too
    except Invalid as error:
        reply = _packed({"raised": "Invalid", "errors": error.errors})
    except CredenceError as error:
        reply = _packed({"raised": type(error).__name__, "message": str(error)})
    except MemoryError:
        reply = _packed({"raised": TOO_LARGE})
    except OSError as error:  # EFBIG: the limit of the output; others: the disk below it
        is_disk = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
        reply = _packed(
            {"raised": DISK, "errno": error.errno} if is_disk else {"raised": TOO_LARGE}
        )
    sys.stdout.buffer.write(reply)
    sys.stdout.flush()
    os._exit(0)  # there is nothing to clean up, and much to free


def _packed(answer: Json) -> bytes:
    return json.dumps(answer).encode()


def _set_limits(limits: Limits) -> None:
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    seconds = int(used) + limits.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.output_bytes, limits.output_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if (sizes := _sizes()) is None:
        return
    memory = sizes[0] + limits.memory_bytes + limits.mapped_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if limits.mapped_bytes:
        memory = sizes[1] + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


def _sizes() -> tuple[int, int] | None:
    """Bytes of address space, and of those the ones that are not of files."""
    try:
        pages = Path("/proc/self/statm").read_text().split()
    except OSError:  # not Linux
        return None
    return int(pages[0]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1:])
