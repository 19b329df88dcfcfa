"""Repeats what a worker does beside its job: heartbeats, lost workers' jobs, lost wake-ups."""

import os
import signal
from contextlib import suppress
from datetime import UTC, datetime

import structlog
from sqlalchemy.exc import SQLAlchemyError

from core.context import Context
from core.exceptions import CredenceError
from core.jobs.claims import Pulse
from core.process.periodic import Periodic
from core.process.watch import Watch
from core.telemetry import tracing
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

log = structlog.get_logger()

_BEAT_SECONDS = 2.0
_SWEEP_EVERY = 5  # beats
_MOST_SENT = 100  # wake-ups in one sweep: the chunks of a job may be a thousand
_DEAF_AFTER = 6  # sweeps; a broker that was away is found again within half a minute
_STOP_SECONDS = 10.0


class Sweeper:
    """A thread that stores heartbeats, takes back lost workers' jobs, and resends wake-ups.

    Wake-ups of queued jobs are sent again only while this worker is idle: then a message was lost,
    because a busy worker would simply not have read it yet. A job that is woken twice runs once.

    A worker that sends wake-ups while it is idle, and never receives one, has lost its connection
    to the broker. It ends, so that its supervisor starts another.
    """

    def __init__(
        self, context: Context, runner: JobRunner, metrics: WorkerMetrics, device: str
    ) -> None:
        self._context, self._runner, self._metrics = context, runner, metrics
        self._device, self._started_at = device, datetime.now(UTC)
        self._claims: Watch[str, Pulse] = Watch(context.settings.lease_seconds)
        self._beats, self._heard, self._unheard = 0, 0, 0
        self._periodic = Periodic("sweep", _BEAT_SECONDS, self._run, at_once=True)
        self.start = self._periodic.start

    def stop(self) -> None:
        """End the thread, and delete this worker from the table of workers."""
        self._periodic.stop()
        with suppress(SQLAlchemyError, CredenceError):
            self._context.workers.leave(self._runner.worker_id)

    def _run(self) -> None:
        is_sweep = self._beats % _SWEEP_EVERY == 0
        self._beats += 1
        self._metrics.beat()
        self._context.workers.beat(self._runner.worker_id, self._device, self._started_at)
        self._take_back_lost_jobs()
        if is_sweep and not self._runner.busy:
            self._resend_wake_ups()

    def _take_back_lost_jobs(self) -> None:
        """Requeue the jobs whose lease nobody renewed for `lease_seconds` of this process's clock.

        An error clears what was observed: while the database is away nobody renews anything, and
        each worker gets a full lease to do so when it is back.
        """
        jobs = self._context.jobs
        try:
            expired = self._claims.unchanged(jobs.pulses())
            taken = jobs.reap(expired, self._context.settings.max_attempts)
        except Exception:
            self._claims.forget()
            raise
        for job_id in taken:  # the lost worker can write neither log nor trace
            origin, about = jobs.get(job_id).origin, {"credence.job.id": job_id}
            with tracing.continued("worker lost", origin.traceparent, **about):
                log.warning(
                    "worker lost, job taken back", job_id=job_id, request_id=origin.request_id
                )

    def _resend_wake_ups(self) -> None:
        waiting = self._context.jobs.queued_ids()[:_MOST_SENT]
        for job_id in waiting:
            self._context.queue.send(job_id)
        self._check_hearing(bool(waiting))

    def _check_hearing(self, has_sent: bool) -> None:
        """End this worker after `_DEAF_AFTER` sweeps whose wake-ups did not reach it."""
        was_woken = self._runner.wake_ups > self._heard
        self._heard = self._runner.wake_ups
        self._unheard = self._unheard + 1 if has_sent and not was_woken else 0
        if self._unheard >= _DEAF_AFTER:
            log.error("jobs are queued, but the broker delivers no wake-ups: this worker ends")
            os.kill(os.getpid(), signal.SIGTERM)
            if not self._periodic.stopped.wait(_STOP_SECONDS):
                os._exit(1)
