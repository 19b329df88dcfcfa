"""Clocks that differ and jump: jobs stay with who has them, and lost ones are found in time."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from core.context import Context
from core.jobs.jobs import JobStatus
from tests.chaos.cradle import Cradle
from tests.chaos.invariants import violations
from tests.waiting import wait_until
from tests.worker.conftest import ENDLESS, train_job, wait_for

HOUR = 3600
LEASE = 2


def _worker(context: Context, cradle: Cradle, tmp_path: Path, clock: str, seconds: float) -> int:
    file = tmp_path / clock
    file.write_text(str(seconds))
    environment = {
        "CREDENCE_DATA_DIR": str(context.settings.data_dir),
        "CREDENCE_LEASE_SECONDS": str(LEASE),
        "CREDENCE_WORKER_METRICS_PORT": "0",
        "CHAOS_CLOCK": str(file),
    }
    return cradle.fork("worker", tmp_path / "log", environment)


@pytest.mark.parametrize("ahead", [600])
def test_a_worker_whose_clock_is_off_takes_no_job_from_another(
    context: Context, cradle: Cradle, dataset: str, tmp_path: Path, ahead: float
) -> None:
    job = train_job(context, dataset, ENDLESS)
    right = _worker(context, cradle, tmp_path, "right", 0)
    wait_for(context, job, JobStatus.RUNNING)
    wrong = _worker(context, cradle, tmp_path, "wrong", ahead)
    wait_until(lambda: len(context.workers.list()) == 2)
    time.sleep(2 * LEASE)
    running = context.jobs.get(job.id)
    assert (running.status, running.attempt) == (JobStatus.RUNNING, 1)
    for pid in (right, wrong):
        cradle.kill(pid)


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_a_clock_that_jumps_loses_and_stalls_no_job(
    context: Context, cradle: Cradle, dataset: str, tmp_path: Path, jump: float
) -> None:
    """Under a running job nothing happens; a worker that is killed then is missed all the same."""
    kept = train_job(context, dataset, ENDLESS)
    first = _worker(context, cradle, tmp_path, "clock", 0)
    wait_for(context, kept, JobStatus.RUNNING)
    second = _worker(context, cradle, tmp_path, "clock", jump)  # the file is both workers' clock
    time.sleep(2 * LEASE)
    assert context.jobs.get(kept.id).attempt == 1
    cradle.kill(first)
    wait_until(lambda: context.jobs.get(kept.id).attempt == 2, seconds=60)
    late = train_job(context, dataset, replace(ENDLESS, epochs=3))
    context.jobs.cancel(kept.id)
    wait_for(context, late, JobStatus.SUCCEEDED)
    wait_for(context, kept, JobStatus.CANCELLED)
    cradle.kill(second)
    assert violations(context) == []
