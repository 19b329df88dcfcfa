"""The periodic tasks of a worker: heartbeats, jobs of lost workers, lost wake-ups."""

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

_BEAT_SECONDS = 1.0
_HEARTBEAT_EVERY = 2  # beats
_SWEEP_EVERY = 5  # beats
_MOST_SENT = 100  # wake-ups in one sweep: a job may have a thousand chunks
_MAX_UNDELIVERED = 12  # sweeps in a row: Celery reconnects to a broker within half a minute
_STOP_SECONDS = 10.0


class Sweeper:
    """A thread that stores heartbeats, requeues jobs of lost workers, and resends wake-ups.

    It resends wake-ups of queued jobs only while this worker is idle: a busy worker has not read
    them yet, but an idle one has missed them. A job runs once even if it is woken twice.

    If this worker sends wake-ups while it is idle and receives none, it has lost its connection to
    the broker. It then ends, so that its supervisor starts another one.
    """

    def __init__(
        self, context: Context, runner: JobRunner, metrics: WorkerMetrics, device: str
    ) -> None:
        self._context, self._runner, self._metrics = context, runner, metrics
        self._device, self._started_at = device, datetime.now(UTC)
        self._claims: Watch[str, Pulse] = Watch(context.settings.lease_seconds)
        self._beats, self._received, self._undelivered = 0, 0, 0
        self._periodic = Periodic("sweep", _BEAT_SECONDS, self._run, at_once=True)
        self.start = self._periodic.start

    def stop(self) -> None:
        """End the thread, and delete this worker from the table of workers."""
        self._periodic.stop()
        with suppress(SQLAlchemyError, CredenceError):
            self._context.workers.leave(self._runner.worker_id)

    def _run(self) -> None:
        is_heartbeat = self._beats % _HEARTBEAT_EVERY == 0
        is_sweep = self._beats % _SWEEP_EVERY == 0
        self._beats += 1
        self._metrics.beat()
        if is_heartbeat:
            self._context.workers.beat(self._runner.worker_id, self._device, self._started_at)
        self._take_back_lost_jobs()
        if is_sweep:
            self._forget_deleted_models()
        if is_sweep and not self._runner.busy:
            self._resend_wake_ups()

    def _take_back_lost_jobs(self) -> None:
        """Requeue the jobs whose lease was not renewed for `lease_seconds` of this process's clock.

        An error clears the observations: while the database is away no worker can renew a lease, so
        each gets a full lease after that.
        """
        jobs = self._context.jobs
        try:
            expired = self._claims.unchanged(jobs.pulses())
            taken = jobs.reap(expired, self._context.settings.max_attempts)
        except Exception:
            self._claims.forget()
            raise
        for job_id in taken:  # logged here, because the lost worker cannot
            origin, about = jobs.get(job_id).origin, {"credence.job.id": job_id}
            with tracing.continued("worker lost", origin.traceparent, **about):
                log.warning(
                    "worker lost, job taken back", job_id=job_id, request_id=origin.request_id
                )
            self._context.queue.send(job_id)  # an idle worker need not wait for a sweep

    def _forget_deleted_models(self) -> None:
        """Remove their metrics. A model that is being trained need not exist yet."""
        if names := self._metrics.models() - self._metrics.running():
            there = {model for model, _ in self._context.registry.existing(names)}
            for name in names - there:
                self._metrics.forget(name)

    def _resend_wake_ups(self) -> None:
        waiting = self._context.jobs.queued_ids()[:_MOST_SENT]
        for job_id in waiting:
            self._context.queue.send(job_id)
        self._check_delivery(bool(waiting))

    def _check_delivery(self, has_sent: bool) -> None:
        """End this worker after `_MAX_UNDELIVERED` sweeps whose wake-ups did not reach it."""
        was_woken = self._runner.wake_ups > self._received
        self._received = self._runner.wake_ups
        self._undelivered = self._undelivered + 1 if has_sent and not was_woken else 0
        if self._undelivered >= _MAX_UNDELIVERED:
            log.error("jobs are queued, but the broker delivers no wake-ups: this worker ends")
            os.kill(os.getpid(), signal.SIGTERM)
            if not self._periodic.stopped.wait(_STOP_SECONDS):
                os._exit(1)
