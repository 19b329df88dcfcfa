"""Runs the API beside the worker, reports when both are ready, stops them within ten seconds."""

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType

import structlog
import typer
from sqlalchemy.exc import SQLAlchemyError

from app.main import create_app
from core.context import Context
from core.database.schema import WorkerRow
from core.exceptions import CredenceError
from core.process.ending import abandon
from core.process.long_lived import keep_present_objects
from core.settings import Settings
from credence import DEFAULT_URL
from credence.serving.agents import mount
from credence.serving.api_thread import ApiThread
from credence.serving.listener import CannotStart, address
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
    """Runs the API on an open socket, and keeps a worker running that has been started.

    It knows at once when the worker has died: then it hands the worker's job on.
    """

    def __init__(
        self, settings: Settings, host: str, listener: socket.socket, worker: WorkerProcess | None
    ) -> None:
        self._settings = settings
        self._address = address(host, listener)
        self._app = mount(create_app(settings, host))
        self._api = ApiThread(self._app, listener, GRACE_SECONDS)
        self._worker = worker
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
                        self._worker.keep_running(self._hand_on)
                    time.sleep(POLL_SECONDS)
            finally:
                self._stop()

    def _start(self) -> None:
        self._api.start()
        self._wait_for(lambda: self._api.ready)
        if worker := self._worker:
            self._wait_for(lambda: any(w.id == worker.worker_id for w in self._workers()))
        threading.Thread(target=_keep_loaded, name="keep loaded objects", daemon=True).start()
        if not self._stopping:
            with suppress(OSError):  # the output's disk may be full, its reader gone
                typer.echo(f"ready on {self._address}")
                if sys.stdout.isatty():
                    typer.echo(WELCOME.format(address=self._address, url=self._url()))

    def _workers(self) -> Sequence[WorkerRow]:
        return self._context.workers.list()

    @property
    def _context(self) -> Context:
        """The services of the API, once it is ready."""
        context: Context = self._app.state.services.context
        return context

    def _hand_on(self, worker_id: str) -> None:
        """Queue the job of a worker that has ended. Without a database its lease ends by itself."""
        try:
            context = self._context
            for job_id in context.jobs.take_back_from(worker_id, context.settings.max_attempts):
                log.warning("worker lost, job handed on", job_id=job_id)
                context.queue.send(job_id)
            context.workers.leave(worker_id)
        except (CredenceError, SQLAlchemyError) as error:
            log.warning("the lost worker's job waits for its lease to end", error=str(error))

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
    with suppress(ImportError):  # without it pyarrow does not look for it again
        import_module("pandas")  # pyarrow does at the first upload, which would wait for it
    compiler().wait()
    keep_present_objects()


def _exit_after(seconds: float) -> None:
    """End this process even if a thread of it hangs."""
    timer = threading.Timer(seconds, abandon, args=[1])
    timer.daemon = True
    timer.start()
