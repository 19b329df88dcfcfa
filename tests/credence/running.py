"""Start the real thing: `credence` commands and `credence serve` as processes."""

import http.client
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.waiting import PATIENCE

READY = "ready on "
CREDENCE = [sys.executable, "-m", "credence"]


def environment(**settings: str) -> dict[str, str]:
    """This process's environment with no settings but these; one thread, plain output."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("CREDENCE_")}
    quiet = {"OMP_NUM_THREADS": "1", "CREDENCE_WORKER_METRICS_PORT": "0", "NO_COLOR": "1"}
    return own | quiet | settings


def credence(
    *arguments: str, url: str = "", stdin: str = "", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `url` is the service it speaks to."""
    env = environment(**settings) | ({"CREDENCE_URL": url} if url else {})
    return subprocess.run(
        [*CREDENCE, *arguments],
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@dataclass(frozen=True)
class Screen:
    """What a command printed at a terminal, and on a standard output that is a file."""

    returncode: int
    text: str
    stdout: str


def at_terminal(*arguments: str, url: str, typed: str) -> Screen:
    """Run a command whose standard input and error are a terminal, on which `typed` is typed."""
    parent, child = pty.openpty()
    env = environment(COLUMNS="200", CREDENCE_URL=url)
    with subprocess.Popen(
        [*CREDENCE, *arguments], env=env, stdin=child, stderr=child, stdout=subprocess.PIPE
    ) as process:
        os.close(child)
        os.write(parent, f"{typed}\x04".encode())  # Ctrl-D: a further question ends the command
        screen = b""
        with suppress(OSError):  # EIO: the other end is closed
            while piece := os.read(parent, 4096):
                screen += piece
        assert process.stdout is not None
        out = process.stdout.read()
    os.close(parent)
    return Screen(process.returncode, screen.decode().replace("\r\n", "\n"), out.decode())


@dataclass(frozen=True)
class Service:
    """A running `credence serve`."""

    url: str
    process: subprocess.Popen[str]
    log_file: Path

    def family(self) -> list[psutil.Process]:
        """The process and all that it started."""
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def worker(self) -> psutil.Process:
        """The one process that is a worker."""
        (worker,) = [p for p in self.family() if "worker" in p.cmdline()]
        return worker


@contextmanager
def serving(
    directory: Path,
    command: str = "serve",
    *options: str,
    python: str = sys.executable,
    **settings: str,
) -> Iterator[Service]:
    """A service on a free port with its data and log in the directory; killed afterwards."""
    log_file = directory / "service.log"
    arguments = [command, "--port", "0", "--data-dir", str(directory / "data"), *options]
    with log_file.open("w") as log:
        process = subprocess.Popen(
            [python, *CREDENCE[1:], *arguments],
            env=environment(**settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith(READY), f"not ready: {line!r}\n{log_file.read_text()}"
        yield Service(line.removeprefix(READY).strip(), process, log_file)
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.communicate()  # closes the pipe


GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


def begin_upload(url: str, name: str, length: int) -> http.client.HTTPConnection:
    """A connection whose head was sent and taken; so many bytes of CSV are to be sent.

    The service says `100 Continue` when it begins to read the body, so nobody has to guess when.
    """
    address = httpx.URL(url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=PATIENCE)
    connection.putrequest("POST", f"/datasets?name={name}")
    connection.putheader("Content-Type", "text/csv")
    connection.putheader("Content-Length", str(length))
    connection.putheader("Expect", "100-continue")
    connection.endheaders()
    said = b""
    while len(said) < len(GO_ON):
        said += connection.sock.recv(len(GO_ON) - len(said)) or b"?" * len(GO_ON)
    assert said == GO_ON, said
    return connection
