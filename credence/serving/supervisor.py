"""Starts the API and the worker, reports when both are ready, stops them within ten seconds."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType

import structlog
import typer

from app.main import create_app
from core.database.database import opened
from core.jobs.workers import Workers
from core.process.long_lived import keep_present_objects
from core.settings import Settings
from credence import DEFAULT_URL
from credence.serving.api_thread import ApiThread, CannotStart, address
from credence.serving.worker_process import WorkerProcess
from models.prediction.compiled.compiler import compiler

STOP_SECONDS = 9.0  # the service promises 10; the rest is for the interpreter's exit
GRACE_SECONDS = 7  # for requests in flight; afterwards the application has to close
POLL_SECONDS = 0.1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

WELCOME = """
  dashboard   {address}/
  HTTP API    {address}/docs

First: upload a CSV file in the dashboard, or in another terminal{url}
  credence train FILE.csv --target COLUMN
  credence predict MODEL ROWS.csv
Ctrl-C stops the service; its data stay."""

log = structlog.get_logger(__name__)


class Supervisor:
    """Runs the API on an open socket and, if wanted, one worker; both use the same settings."""

    def __init__(
        self, settings: Settings, host: str, listener: socket.socket, *, with_worker: bool
    ) -> None:
        self._settings = settings
        self._address = address(host, listener)
        self._api = ApiThread(create_app(settings, host), listener, GRACE_SECONDS)
        environment = os.environ | {"CREDENCE_DATA_DIR": str(settings.data_dir)}
        self._worker = WorkerProcess(environment) if with_worker else None
        self._stopping = False

    def run(self) -> None:
        """Run until SIGTERM, SIGINT or SIGHUP; afterwards no process is left.

        Raises:
            CannotStart: the API or the worker ended before both were ready, or the API later.
        """
        with self._signals():
            try:
                self._start()
                while not self._stopping:
                    self._check_api()
                    if self._worker:
                        self._worker.keep_running()
                    time.sleep(POLL_SECONDS)
            finally:
                self._stop()

    def _start(self) -> None:
        started_at = datetime.now(UTC)
        self._api.start()
        if self._worker:
            self._worker.start()
        self._wait_for(lambda: self._api.ready)
        if self._worker and not self._stopping:
            with opened(self._settings.sqlalchemy_url) as database:
                workers = Workers(database)
                self._wait_for(lambda: any(w.started_at >= started_at for w in workers.list()))
        threading.Thread(target=_keep_loaded, name="keep loaded objects", daemon=True).start()
        if not self._stopping:
            typer.echo(f"ready on {self._address}")
            if sys.stdout.isatty():
                typer.echo(WELCOME.format(address=self._address, url=self._url()))

    def _url(self) -> str:
        """The line with the address for commands; empty if it is the default."""
        return "" if self._address == DEFAULT_URL else f"\n  export CREDENCE_URL={self._address}"

    def _wait_for(self, ready: Callable[[], bool]) -> None:
        while not (self._stopping or ready()):
            self._check_api()
            if self._worker:
                self._keep_starting(self._worker)
            time.sleep(POLL_SECONDS)

    def _keep_starting(self, worker: WorkerProcess) -> None:
        """Restart a worker that was killed; one that exited by itself would exit again."""
        if worker.exit_code is not None and worker.exit_code >= 0:
            raise CannotStart(
                f"the worker ended with exit code {worker.exit_code} before it was ready"
            )
        worker.keep_running()

    def _check_api(self) -> None:
        if not self._api.alive:
            raise CannotStart("the API has ended; the log above says why")

    def _stop(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        log.info("stopping")
        _exit_after(STOP_SECONDS + 0.5)
        self._api.stop()
        if self._worker:
            self._worker.stop()
            self._worker.join(deadline - time.monotonic())
        self._api.join(deadline - time.monotonic())

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(number: int, frame: FrameType | None) -> None:
            self._stopping = True  # a signal handler must not wait for a lock

        before = {number: signal.signal(number, stop) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _keep_loaded() -> None:
    """When all is imported, the compiler of predictions last, take it out of collections."""
    compiler().wait()
    keep_present_objects()


def _exit_after(seconds: float) -> None:
    """End this process even if a thread of it hangs."""
    timer = threading.Timer(seconds, os._exit, args=[1])
    timer.daemon = True
    timer.start()
