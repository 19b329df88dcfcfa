"""Jobs that take too much: each ends with a reason, and the worker goes on with the next."""

from dataclasses import replace

import pytest
import torch

from core.context import Context
from core.jobs.jobs import JobStatus
from tests.worker.conftest import ENDLESS, error_of, logged, train_job
from worker import limits
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner, describe

HOUR, GIBIBYTE = 3600.0, 2.0**30


class Usage:
    """A worker's clock and memory, one of which grows after a few mini-batches."""

    def __init__(
        self, context: Context, monkeypatch: pytest.MonkeyPatch, name: str, much: float
    ) -> None:
        self.seconds, self.bytes, self._looks = 0.0, 0.0, 0
        self._name, self._much = name, much
        monkeypatch.setattr("worker.lease._RENEW_SECONDS", 0.02)
        monkeypatch.setattr(limits, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(limits, "used_bytes", lambda: self.bytes)
        settings = context.settings.model_copy(
            update={"max_job_seconds": HOUR, "max_job_bytes": GIBIBYTE}
        )
        own = replace(context, settings=settings)
        self.runner = JobRunner(own, "limited", WorkerMetrics(), self._look)
        self.grows = True

    def _look(self) -> bool:
        self._looks += 1
        if self.grows and self._looks % 30 == 0:
            setattr(self, self._name, getattr(self, self._name) + self._much)
        return False


@pytest.mark.parametrize(
    ("name", "much", "code", "setting"),
    [
        ("seconds", 2 * HOUR, "time_limit", "CREDENCE_MAX_JOB_SECONDS"),
        ("bytes", 2 * GIBIBYTE, "out_of_memory", "CREDENCE_MAX_JOB_BYTES"),
    ],
)
def test_a_job_over_a_limit_fails_and_can_be_resumed_and_the_next_one_runs(  # noqa: PLR0917
    context: Context,
    dataset: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    much: float,
    code: str,
    setting: str,
) -> None:
    usage = Usage(context, monkeypatch, name, much)
    job = train_job(context, dataset, ENDLESS)
    usage.runner.wake()
    assert error_of(context, job)[0] == code
    assert setting in error_of(context, job)[1]
    assert context.checkpoints.exists(job.id)
    usage.bytes, usage.grows = 0.0, False
    other = train_job(context, dataset)
    usage.runner.wake()
    assert context.jobs.get(other.id).status == JobStatus.SUCCEEDED
    usage.grows = True
    context.jobs.resume(job.id)
    usage.runner.wake()
    assert logged(context, job) == ["continues from a checkpoint"]


@pytest.mark.timing
def test_the_memory_of_a_worker_is_what_it_has_written() -> None:
    before = limits.used_bytes()
    hoard = bytearray(b"x") * 2**30
    assert limits.used_bytes() - before == pytest.approx(len(hoard), rel=0.1)


def test_an_allocation_that_is_refused_is_told_as_what_it_is() -> None:
    """Torch on a CPU has no class for it."""
    with pytest.raises(RuntimeError) as refused:
        torch.empty(2**50, dtype=torch.float64)
    assert describe(refused.value)[0] == "out_of_memory"
