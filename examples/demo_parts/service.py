"""Start `credence serve` in an empty directory on a free port, and stop it."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from credence.client import Client

READY = "ready on "
STOP_SECONDS = 15  # the service itself stops within 10


@contextmanager
def running_service(log_file: Path) -> Iterator[Client]:
    """A client of a fresh service; the service and its data are gone after the block.

    Raises:
        RuntimeError: the service ended before it was ready.
    """
    with (
        tempfile.TemporaryDirectory(prefix="credence-demo-") as data_dir,
        log_file.open("w") as log,
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "credence", "serve", "--port", "0", "--data-dir", data_dir],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        try:
            with Client(_address(process, log_file)) as client:
                yield client
        finally:
            _stop(process)


def _address(process: subprocess.Popen[str], log_file: Path) -> str:
    for line in process.stdout or ():
        if line.startswith(READY):
            return line.removeprefix(READY).strip()
    raise RuntimeError(f"the service did not start:\n{log_file.read_text()}")


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.stdout:
            process.stdout.close()
