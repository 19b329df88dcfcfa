"""Runs one job from claim to end, and writes its outcome to its row."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog
import torch

from core.context import Context
from core.exceptions import CredenceError, LostClaim, NotFound, Unavailable
from core.jobs.jobs import (
    FINAL,
    AcquireSpec,
    ChunkSpec,
    Claim,
    EvaluateSpec,
    Job,
    JobStatus,
    MethodSpec,
    TrainSpec,
)
from core.process.disks import on_disk
from core.process.freed_memory import return_freed_memory
from core.schedules.runs import Runs
from core.telemetry import tracing
from models.exceptions import Diverged, ModelError, Stopped
from worker.acquisition import run_acquisition
from worker.evaluation import run_evaluation
from worker.lease import Lease
from worker.limits import OverLimit
from worker.metrics import WorkerMetrics
from worker.prediction import run_chunk
from worker.schedules.run import run_scheduled
from worker.torchrun import ProcessLost
from worker.training import run_training

log = structlog.get_logger()

WRITE_AGAIN_SECONDS = 1.0
PAUSE_SECONDS = 20.0  # if store or database is away: other jobs would need them, too
CODES: dict[type[Exception], str] = {  # the first that matches
    Diverged: "diverged",
    NotFound: "not_found",
    ProcessLost: "worker_lost",
    ModelError: "invalid_data",
    CredenceError: "invalid_data",
}


@dataclass
class JobRunner:
    """Runs one job at a time in the calling thread.

    Args:
        wake_ups: the number of wake-ups received so far.
    """

    context: Context
    worker_id: str
    metrics: WorkerMetrics
    should_stop: Callable[[], bool]
    busy: bool = field(default=False, init=False)
    wake_ups: int = field(default=0, init=False)

    def wake(self) -> None:
        """Claim and run the job whose turn it is. Do nothing if no job waits.

        A wake-up may come twice, late, or for a deleted job: only the jobs' rows decide.
        """
        self.wake_ups += 1
        if self.should_stop():
            return
        lease_seconds = self.context.settings.lease_seconds
        claim = self.context.jobs.claim_next(self.worker_id, lease_seconds)
        if claim is None:
            return
        self.busy, started, job_id = True, time.monotonic(), claim.job_id
        with structlog.contextvars.bound_contextvars(job_id=job_id, attempt=claim.attempt):
            try:
                self._run_claimed(claim)
            finally:
                self.busy = False
                self._observe(job_id, time.monotonic() - started)

    def _run_claimed(self, claim: Claim) -> None:
        job = self.context.jobs.get(claim.job_id)
        with _logging_for(job), Lease(self.context, claim) as lease:
            log.info("job started", kind=job.kind, model=job.model)
            try:
                with on_disk("the data directory"):
                    self._work(job, claim, lambda: lease.interrupted or self.should_stop())
                log.info("job succeeded")
            except LostClaim:
                tracing.event("claim lost")
                log.warning("job lost to another worker or cancelled")
            except Stopped:
                self._stop(claim, lease)
            except Unavailable as error:
                log.warning(
                    "a service is unavailable: the job waits",
                    error=str(error),
                    seconds=PAUSE_SECONDS,
                )
                self._pause(lease)
                self._hand_back(claim, lease)
            except Exception as error:
                self._fail(claim, error)
            finally:
                self.metrics.remove(job.model)
                if not self.should_stop():  # a process that ends frees all at once
                    gc.collect()  # frees cycles of a failed job, which would count as the next's
                    return_freed_memory()

    def _work(self, job: Job, claim: Claim, should_stop: Callable[[], bool]) -> None:
        if job.kind == "train":
            kind = TrainSpec if job.parent is None else MethodSpec
            spec = kind.model_validate(job.spec)
            run = run_training if spec.scheduled is None else run_scheduled
            run(self.context, claim, spec, self.metrics, should_stop)
        elif job.kind == "chunk":
            chunk = ChunkSpec.model_validate(job.spec)
            run_chunk(self.context, claim, chunk, job.owner, should_stop)
        elif job.kind == "acquire":
            acquire = AcquireSpec.model_validate(job.spec)
            found = run_acquisition(self.context, acquire, should_stop)
            self.context.jobs.finish(
                claim, JobStatus.SUCCEEDED, metrics=found, version=acquire.version
            )
        else:
            evaluate = EvaluateSpec.model_validate(job.spec)
            metrics = run_evaluation(self.context, evaluate)
            self.context.jobs.finish(
                claim, JobStatus.SUCCEEDED, metrics=metrics, version=evaluate.version
            )

    def _stop(self, claim: Claim, lease: Lease) -> None:
        """End or requeue a job that stopped between two mini-batches, with its checkpoint."""
        if lease.over_limit and not lease.cancelled:
            self._fail(claim, lease.over_limit)
        else:
            self._hand_back(claim, lease)

    def _hand_back(self, claim: Claim, lease: Lease) -> None:
        """Requeue the job, or set it to cancelled if it was cancelled."""
        if not self._write(lambda: self.context.jobs.release(claim)):
            return
        outcome = "job cancelled" if lease.cancelled else "job handed back"
        tracing.event(outcome)
        log.info(outcome)
        if not lease.cancelled:
            self._wake(claim.job_id)

    def _pause(self, lease: Lease) -> None:
        """Sleep for `PAUSE_SECONDS`, or until the job or the worker must stop."""
        end = time.monotonic() + PAUSE_SECONDS
        while time.monotonic() < end and not (lease.interrupted or self.should_stop()):
            time.sleep(0.1)

    def _write(self, change: Callable[[], object]) -> bool:
        """Write the outcome of the job; False if another worker has it, or this one must stop.

        While the database is away it retries: otherwise the job would count as lost by its worker.
        """
        while True:
            try:
                change()
            except LostClaim:
                log.warning("job was taken over before its outcome was written")
                return False
            except Unavailable as error:
                log.warning("the outcome of the job is not written yet", error=str(error))
                if self.should_stop():
                    return False  # another worker takes it when the lease ends
                time.sleep(WRITE_AGAIN_SECONDS)
            else:
                return True

    def _wake(self, job_id: str) -> None:
        try:
            self.context.queue.send(job_id)
        except CredenceError as error:
            log.warning("wake-up not sent: a sweep will send it", error=str(error))

    def _fail(self, claim: Claim, error: Exception) -> None:
        code, message = describe(error)
        tracing.fail(code)
        if code == "internal":
            log.exception("job failed")
        else:
            log.warning("job failed", code=code, error=message)
        failure = {"code": code, "message": message}
        self._write(lambda: self.context.jobs.finish(claim, JobStatus.FAILED, error=failure))

    def _observe(self, job_id: str, seconds: float) -> None:
        try:
            job = self.context.jobs.get(job_id)
            if job.spec.get("scheduled") and job.status in FINAL:
                decision = Runs(self.context.database).decision(job_id)
                self.metrics.schedule_runs.labels(decision or str(job.status)).inc()
        except Unavailable:  # do not wait for a metric
            return
        self.metrics.job_seconds.labels(job.kind, str(job.status)).observe(seconds)


@contextmanager
def _logging_for(job: Job) -> Iterator[None]:
    """Add the ids of the job and of its request to the log lines and spans of the block."""
    ids = {"request_id": job.origin.request_id, "parent_job_id": job.parent}
    attributes: dict[str, tracing.Attribute] = {
        "credence.job.id": job.id,
        "credence.job.kind": job.kind,
        "credence.job.attempt": job.attempt,
        "credence.model": job.model,
    }
    with (
        structlog.contextvars.bound_contextvars(**{k: v for k, v in ids.items() if v}),
        tracing.continued("job", job.origin.traceparent, **attributes),
    ):
        if job.attempt > 1:
            tracing.event("retry")
        yield


def describe(error: Exception) -> tuple[str, str]:
    """A code for programs and a message for people, without details of unknown errors."""
    if isinstance(error, OverLimit):
        return error.code, str(error)
    for kind, code in CODES.items():
        if isinstance(error, kind):
            return code, str(error)
    if _is_out_of_memory(error):
        advice = "give a smaller training.batch_size or network.hidden"
        return "out_of_memory", f"not enough memory: {advice}"
    return "internal", f"an unexpected {type(error).__name__}; the worker's log has more"


def _is_out_of_memory(error: Exception) -> bool:
    """Whether memory ran out; on a CPU torch raises a plain RuntimeError."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error))
