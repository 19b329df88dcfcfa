"""Jobs that take too much: each ends with a reason, and the worker goes on with the next."""

from dataclasses import replace

import pytest

from core.context import Context
from core.jobs.jobs import Job, JobStatus
from tests.worker.conftest import ENDLESS, QUICK, train_job
from worker.limits import used_bytes
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner, describe

MEBIBYTE = 2**20


def _limited(context: Context, **limits: float) -> JobRunner:
    settings = context.settings.model_copy(update=limits)
    own = replace(context, settings=settings)
    return JobRunner(own, "limited", WorkerMetrics(), lambda: False)


def _error(job: Job) -> dict[str, str]:
    assert job.error is not None
    return job.error


def test_a_job_over_its_time_fails_and_a_resume_goes_on_from_its_checkpoint(
    context: Context, dataset: str
) -> None:
    job = train_job(context, dataset, ENDLESS)
    _limited(context, max_job_seconds=0.5).wake()
    failed = context.jobs.get(job.id)
    assert failed.status == JobStatus.FAILED
    assert _error(failed)["code"] == "time_limit"
    assert "CREDENCE_MAX_JOB_SECONDS" in _error(failed)["message"]
    assert context.checkpoints.exists(job.id)
    context.jobs.resume(job.id)
    _limited(context, max_job_seconds=0.5).wake()
    logged = [event.data for event in context.jobs.events(job.id) if event.type == "log"]
    assert logged == [{"message": "continues from a checkpoint"}]


def test_a_job_over_its_memory_fails_and_the_next_one_runs(context: Context, dataset: str) -> None:
    """The limit is what the worker takes now: a hoard in the way of the first job alone."""
    runner = _limited(context, max_job_bytes=used_bytes() + 1024 * MEBIBYTE)
    large = train_job(context, dataset, ENDLESS)
    hoard = bytearray(b"x") * (1536 * MEBIBYTE)
    runner.wake()
    del hoard
    failed = context.jobs.get(large.id)
    assert failed.status == JobStatus.FAILED
    assert _error(failed)["code"] == "out_of_memory"
    assert "CREDENCE_MAX_JOB_BYTES" in _error(failed)["message"]
    small = train_job(context, dataset, QUICK)
    runner.wake()
    assert context.jobs.get(small.id).status == JobStatus.SUCCEEDED


def test_an_allocation_that_is_refused_is_told_as_what_it_is() -> None:
    """Torch on a CPU has no class for it."""
    import torch

    with pytest.raises(RuntimeError) as refused:
        torch.empty(2**50, dtype=torch.float64)
    assert describe(refused.value)[0] == "out_of_memory"
