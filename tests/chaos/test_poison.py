"""A job that kills whoever takes it, at the head of the queue."""

import signal
from pathlib import Path

from core.context import Context
from core.jobs.jobs import JobStatus
from tests.chaos.cradle import Cradle
from tests.waiting import wait_until
from tests.worker.conftest import QUICK, train_job, wait_for


def test_a_job_that_kills_its_workers_does_not_block_the_others(
    context: Context, cradle: Cradle, dataset: str, tmp_path: Path
) -> None:
    """Two attempts, each a dead worker; what was queued behind it runs in between."""
    poison = train_job(context, dataset, QUICK, model="poison")
    others = [train_job(context, dataset, QUICK) for _ in range(2)]
    for job in (poison, *others):
        context.queue.send(job.id)
    environment = {
        "CREDENCE_DATA_DIR": str(context.settings.data_dir),
        "CREDENCE_LEASE_SECONDS": "2",
        "CREDENCE_MAX_ATTEMPTS": "2",
        "CREDENCE_WORKER_METRICS_PORT": "0",
    }

    def start() -> int:
        return cradle.fork("poisoned_worker", tmp_path / "log", environment)

    assert cradle.wait(start()) == -signal.SIGKILL
    assert cradle.wait(start()) == -signal.SIGKILL
    last = start()
    wait_until(lambda: context.jobs.get(poison.id).status == JobStatus.FAILED)
    for job in others:
        wait_for(context, job, JobStatus.SUCCEEDED)
    cradle.kill(last)
    failed = context.jobs.get(poison.id)
    assert failed.attempt == 2
    assert failed.error is not None
    assert failed.error["code"] == "worker_lost"
    assert "lost its worker 2 times" in failed.error["message"]
    ended = [context.jobs.get(job.id).finished_at for job in (*others, poison)]
    assert ended == sorted(filter(None, ended)), "the poison came last, though it was first"
