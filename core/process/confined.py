"""Runs a function in a child process that may take so much memory and time, and no more.

For libraries that parse untrusted files and may allocate what those files ask for, or end the
process. The child has no secrets in its environment, and ends with its parent.
"""

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

from core.exceptions import CredenceError, Invalid, NotParseable, TooLarge, UnsupportedFormat
from core.process.parent import stop_with_stdin

Json = dict[str, Any]

KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "HOME")
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_IO_THREADS")
TOO_LARGE = "too large"
RAISED = {one.__name__: one for one in (NotParseable, TooLarge, UnsupportedFormat)}


@dataclass(frozen=True)
class Limits:
    """What a child may take.

    Args:
        memory_bytes: of address space, beyond what it has after its imports.
        output_bytes: that it may write.
        cpu_seconds: of all its threads.
    """

    memory_bytes: int
    output_bytes: int
    cpu_seconds: int = 120


@dataclass(frozen=True)
class Outcome:
    """What the function returned, and the bytes that it wrote."""

    answer: Json
    output: memoryview


def run(function: str, arguments: Json, limits: Limits, what: str) -> Outcome:
    """Call `module:name` in a child with an open file, and the arguments as keywords.

    Args:
        arguments: in JSON.
        what: the name of what is read, for messages.

    Raises:
        NotParseable, Invalid, TooLarge, UnsupportedFormat: as the function raises them.
        TooLarge: a limit was reached.
        NotParseable: the child broke.
    """
    with _anonymous_file() as output:
        command = [sys.executable, "-P", "-m", __name__, function, json.dumps(arguments)]
        limited = [str(output.fileno()), json.dumps(vars(limits))]
        process = subprocess.Popen(  # noqa: S603 - this interpreter, on our own module
            [*command, *limited],
            stdin=subprocess.PIPE,  # it closes when this process ends
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[output.fileno()],
            env=_environment(),
        )
        with process:
            assert process.stdout is not None
            answer = process.stdout.read()
        return Outcome(_answer(answer, process.returncode, limits, what), _mapped(output))


def _answer(answer: bytes, status: int, limits: Limits, what: str) -> Json:
    if status in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TooLarge(f"{what} takes more than {limits.cpu_seconds} seconds to be read")
    if status == -signal.SIGABRT:
        raise _too_large(limits, what)
    try:
        found: Json = json.loads(answer)
    except ValueError as error:
        raise NotParseable(f"{what} is damaged: its reader broke") from error
    if "raised" not in found:
        return found
    if found["raised"] == TOO_LARGE:
        raise _too_large(limits, what)
    if found["raised"] == "Invalid":
        raise Invalid([(path, message) for path, message in found["errors"]])
    raise RAISED.get(found["raised"], NotParseable)(found["message"])


def _too_large(limits: Limits, what: str) -> TooLarge:
    return TooLarge(
        f"{what} takes more than {limits.memory_bytes} bytes of memory while it is read, or gives "
        f"more than {limits.output_bytes} bytes: send its table as CSV or Parquet, which are read "
        "in pieces"
    )


def _environment() -> Mapping[str, str]:
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    modules = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    threads = dict.fromkeys(ONE_THREAD, "1")
    return kept | threads | {"PYTHONPATH": modules, "ARROW_DEFAULT_MEMORY_POOL": "system"}


def _anonymous_file() -> IO[bytes]:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("output"), "w+b")
    return tempfile.TemporaryFile()


def _mapped(file: IO[bytes]) -> memoryview:
    size = os.fstat(file.fileno()).st_size
    if not size:
        return memoryview(b"")
    return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def main(arguments: Sequence[str]) -> None:
    """The child: set the limits, call the function, write what it returns or raises."""
    stop_with_stdin(0)
    function, given, output, limits = arguments
    module, _, name = function.partition(":")
    call = getattr(importlib.import_module(module), name)
    _set_limits(Limits(**json.loads(limits)))
    try:
        with os.fdopen(int(output), "wb") as file:
            answer = call(file=file, **json.loads(given))
    except Invalid as error:
        answer = {"raised": "Invalid", "errors": error.errors}
    except CredenceError as error:
        answer = {"raised": type(error).__name__, "message": str(error)}
    except (MemoryError, OSError):  # OSError: the output is full
        answer = {"raised": TOO_LARGE}
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # there is nothing to clean up, and much to free


def _set_limits(limits: Limits) -> None:
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    seconds = int(used) + limits.cpu_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_FSIZE, (limits.output_bytes, limits.output_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if (size := _address_space()) is not None:
        memory = size + limits.memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _address_space() -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:  # not Linux
        return None
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1:])
