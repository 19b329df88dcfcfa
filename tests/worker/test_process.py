"""Real worker processes on the broker in a folder: signals, kills, lost messages, cancellation."""

import urllib.request
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from core.context import Context
from core.jobs.jobs import JobStatus
from tests.waiting import free_port, wait_until
from tests.worker.conftest import ENDLESS, QUICK, train_job, wait_for, worker

pytestmark = pytest.mark.stack
SUCCEEDED, QUEUED, RUNNING = JobStatus.SUCCEEDED, JobStatus.QUEUED, JobStatus.RUNNING


def test_a_wake_up_runs_the_job_and_the_exposition_tells(context: Context, dataset: str) -> None:
    port = free_port()
    with worker(context, CREDENCE_WORKER_METRICS_PORT=str(port)):
        job = train_job(context, dataset, replace(QUICK, epochs=800))
        context.queue.send(job.id)
        wait_for(context, job, SUCCEEDED)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
    names = {family.name for family in text_string_to_metric_families(text)}
    assert {
        "credence_build_info",
        "credence_train_epoch_seconds",
        "credence_train_job_seconds",
        "credence_train_nelbo",
        "credence_train_kl",
        "credence_worker_heartbeat_timestamp_seconds",
    } <= names


def test_a_job_whose_wake_up_was_lost_runs_all_the_same(context: Context, dataset: str) -> None:
    job = train_job(context, dataset)
    with worker(context):
        assert wait_for(context, job, SUCCEEDED).version == 1


def test_cancel_and_resume(context: Context, dataset: str) -> None:
    job = train_job(context, dataset, ENDLESS)

    def epoch() -> int:
        return (context.jobs.get(job.id).progress or {}).get("epoch", 0)

    def cancel() -> None:
        context.jobs.cancel(job.id)
        wait_until(lambda: context.jobs.get(job.id).status == JobStatus.CANCELLED)

    with worker(context):
        wait_until(lambda: epoch() > 3)
        cancel()
        assert context.checkpoints.exists(job.id)
        reached = epoch()
        context.jobs.resume(job.id)
        context.queue.send(job.id)
        wait_until(lambda: epoch() > reached)
        cancel()
    assert context.jobs.get(job.id).attempt == 2
