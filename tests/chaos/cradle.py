"""Starts real processes of the service in milliseconds: forks of one that has imported everything.

Run as a program it reads orders, a line of JSON each, and answers with a line: `fork` a process and
tell its id, `wait` for its end and tell its exit code (negative: the signal), or `poll` for it.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    "CREDENCE_THREADS": "1",
    "NO_COLOR": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


class Cradle:
    """The side of the tests; its processes end with it."""

    def __init__(self) -> None:
        own = {k: v for k, v in os.environ.items() if not k.startswith("CREDENCE_")}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.chaos.cradle"],
            env=own | ENVIRONMENT,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._children: set[int] = set()

    def __enter__(self) -> "Cradle":
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._children):
            self.kill(pid)
        self._process.communicate()

    def fork(self, entry: str, log: Path, environment: Mapping[str, str], **arguments: Any) -> int:
        """Run `tests.chaos.children.ENTRY(**arguments)` in a process of its own; its id."""
        pid = self._ask(
            order="fork", entry=entry, log=str(log), environment=environment, arguments=arguments
        )
        self._children.add(pid)
        return pid

    def wait(self, pid: int) -> int:
        """The exit code of a process, once it has ended."""
        self._children.discard(pid)
        return self._ask(order="wait", pid=pid)

    def poll(self, pid: int) -> int | None:
        """As `wait`; None while it runs."""
        code: int | None = self._ask(order="poll", pid=pid)
        if code is not None:
            self._children.discard(pid)
        return code

    def kill(self, pid: int) -> None:
        """SIGKILL, and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        self.wait(pid)

    def _ask(self, **order: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def main() -> None:
    """Serve orders until standard input closes, or somebody ends the run."""
    from tests.chaos import children

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what is logged is no answer
    children.load()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    running: set[int] = set()
    try:
        _serve(answers, running)
    finally:
        for pid in running:  # whoever asked was killed
            os.kill(pid, signal.SIGKILL)


def _serve(answers: TextIO, running: set[int]) -> None:
    from tests.chaos import children

    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        if order["order"] == "fork":
            pid = os.fork()
            if pid == 0:
                answers.close()
                children.run(order)  # never returns
            running.add(pid)
            answer: int | None = pid
        else:
            option = os.WNOHANG if order["order"] == "poll" else 0
            ended, status = os.waitpid(order["pid"], option)
            running.discard(ended)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
