"""The worker: a child process that is restarted when it ends, and ends with its parent."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType

import structlog

from core.names import new_worker_id

WORKER = (sys.executable, "-P", "-m", "credence", "worker", "--stop-with-stdin")
NEXT_RESTART_SECONDS, MAX_RESTART_SECONDS = 1.0, 60.0
STEADY_SECONDS = 60.0  # a process that ran longer restarts at once

log = structlog.get_logger(__name__)


class WorkerProcess:
    """`credence worker`, in a process group of its own: Ctrl-C reaches only the supervisor.

    The child reads a pipe that only this process holds open. The pipe closes even when this
    process is killed, and then the child stops. Each process has a new `worker_id`, under which it
    claims jobs.

    As a context manager it starts the process, and leaves none behind.
    """

    def __init__(
        self,
        environment: dict[str, str],
        command: Sequence[str] = WORKER,
        next_restart_seconds: float = NEXT_RESTART_SECONDS,
    ) -> None:
        self._environment = environment
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._restart_at: float | None = None
        self._next_restart_seconds = next_restart_seconds
        self._delay_seconds = 0.0
        self.worker_id = ""

    def __enter__(self) -> "WorkerProcess":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.join(0.0)

    def start(self) -> None:
        """Start the process; kill what is left of an earlier one."""
        self._kill_group()
        self._restart_at = None
        self._started = time.monotonic()
        self.worker_id = new_worker_id()
        self._process = subprocess.Popen(
            [*self._command, "--worker-id", self.worker_id],
            env=self._environment,
            stdin=subprocess.PIPE,
            process_group=0,
        )

    @property
    def pid(self) -> int | None:
        """Id of the last process that was started."""
        return self._process.pid if self._process else None

    @property
    def exit_code(self) -> int | None:
        """Exit code of the process; None while it runs."""
        return self._process.poll() if self._process else None

    def keep_running(self, on_end: Callable[[str], None] = lambda worker_id: None) -> None:
        """Restart the process if it has ended, with exponential back-off if it ends early.

        Args:
            on_end: called once with the id of a worker that has ended, and all it started with it.
        """
        if self.exit_code is None:
            return
        now = time.monotonic()
        if self._restart_at is None:
            steady = now - self._started > STEADY_SECONDS
            self._delay_seconds = 0.0 if steady else self._delay_seconds
            self._restart_at = now + self._delay_seconds
            log.warning(
                "worker ended", exit_code=self.exit_code, restart_seconds=self._delay_seconds
            )
            longer = max(2 * self._delay_seconds, self._next_restart_seconds)
            self._delay_seconds = min(longer, MAX_RESTART_SECONDS)
            self._kill_group()
            lost, now = self.worker_id, time.monotonic()
            if now >= self._restart_at:
                self.start()  # before the rest: it takes seconds to load
            on_end(lost)
        elif now >= self._restart_at:
            self.start()

    def stop(self) -> None:
        """Ask the worker to return its job to the queue and end."""
        if self._process:
            self._process.terminate()

    def join(self, timeout_seconds: float) -> None:
        """Wait for the end, but no longer than this; then kill it and all that it started."""
        if self._process:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(timeout_seconds, 0.0))
            self._kill_group()

    def _kill_group(self) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with self._process:  # waits for the process, and closes the pipe
                pass
