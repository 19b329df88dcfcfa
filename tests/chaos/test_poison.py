"""A job that kills whoever takes it, at the head of the queue."""

import signal

from core.jobs.jobs import JobStatus
from tests.chaos.conftest import Stage
from tests.worker.conftest import error_of, train_job


def test_a_job_that_kills_its_workers_does_not_block_the_others(stage: Stage) -> None:
    """Two attempts, each a dead worker; what was queued behind it runs in between."""
    context = stage.context
    poison = train_job(context, stage.dataset, model="poison")
    others = [train_job(context, stage.dataset) for _ in range(2)]
    for _ in range(2):
        assert stage.run("poisoned_worker") == -signal.SIGKILL, stage.log.read_text()
    assert error_of(context, poison)[0] == "worker_lost"
    assert context.jobs.get(poison.id).attempt == 2
    assert {context.jobs.get(job.id).status for job in others} == {JobStatus.SUCCEEDED}
