"""What nobody told the worker: workers that were lost, queued jobs whose wake-up was lost.

And what nobody will ask for again: stored predictions whose time is up.
"""

import os
import signal
import threading
from contextlib import suppress
from datetime import UTC, datetime

import structlog
from sqlalchemy.exc import SQLAlchemyError

from core.context import Context
from core.exceptions import CredenceError
from worker.metrics import WorkerMetrics
from worker.reaper import Reaper
from worker.runner import JobRunner

log = structlog.get_logger()

_BEAT_SECONDS = 2.0
_SWEEP_EVERY = 5  # beats
_MOST_SENT = 100  # wake-ups in one sweep: the chunks of a job may be a thousand
_DEAF_AFTER = 6  # sweeps; a broker that was away is found again within half a minute
_STOP_SECONDS = 10.0


class Sweeper:
    """A thread that shows the worker lives, looks after the others and, now and then, sweeps.

    Queued jobs are sent again only while this worker is idle: then a message was lost, since a
    busy one simply has not come to it. A job that is woken twice runs once.

    A worker that sends wake-ups while it is idle, and never hears of one, has lost its ear for the
    broker: it ends, so that whoever watches it starts another.
    """

    def __init__(
        self, context: Context, runner: JobRunner, metrics: WorkerMetrics, device: str
    ) -> None:
        self._context, self._runner, self._metrics = context, runner, metrics
        self._device, self._started_at = device, datetime.now(UTC)
        self._reaper = Reaper(context)
        self._heard, self._unheard = 0, 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        with suppress(SQLAlchemyError, CredenceError):
            self._context.workers.leave(self._runner.worker_id)

    def _run(self) -> None:
        beat = 0
        while not self._stopped.is_set():
            try:
                self._beat()
                if beat % _SWEEP_EVERY == 0:
                    self._sweep()
            except Exception as error:  # whatever it is, the thread must live
                log.warning("sweep failed", error=str(error))
            beat += 1
            self._stopped.wait(_BEAT_SECONDS)

    def _beat(self) -> None:
        self._metrics.beat()
        self._context.workers.beat(self._runner.worker_id, self._device, self._started_at)
        self._reaper.look()

    def _sweep(self) -> None:
        jobs = self._context.jobs
        if self._runner.busy:
            return
        waiting = jobs.queued_ids()[:_MOST_SENT]
        for job_id in waiting:
            self._context.queue.send(job_id)
        self._listen(bool(waiting))

    def _listen(self, has_sent: bool) -> None:
        """Count the sweeps whose wake-ups reached nobody: not this worker, or the job would run."""
        was_woken = self._runner.wake_ups > self._heard
        self._heard = self._runner.wake_ups
        self._unheard = self._unheard + 1 if has_sent and not was_woken else 0
        if self._unheard >= _DEAF_AFTER:
            log.error("jobs wait, but the broker brings no wake-ups: this worker ends")
            os.kill(os.getpid(), signal.SIGTERM)
            if not self._stopped.wait(_STOP_SECONDS):
                os._exit(1)
