"""Real worker processes: signals, kills, lost messages, cancellation and both brokers."""

import signal
import socket
import urllib.request
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from core.context import Context
from core.jobs.jobs import JobStatus
from tests.ports import free_port
from tests.waiting import wait_until
from tests.worker.conftest import ENDLESS, QUICK, train_job, wait_for, worker

SUCCEEDED, QUEUED, RUNNING = JobStatus.SUCCEEDED, JobStatus.QUEUED, JobStatus.RUNNING
CANCELLED = JobStatus.CANCELLED


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
    assert context.workers.list()[0].device == "cpu"


def test_a_job_whose_wake_up_was_lost_runs_all_the_same(context: Context, dataset: str) -> None:
    job = train_job(context, dataset)
    with worker(context):
        assert wait_for(context, job, SUCCEEDED).version == 1


def test_cancel_and_resume(context: Context, dataset: str) -> None:
    job = train_job(context, dataset, replace(ENDLESS, epochs=4000))
    with worker(context):
        wait_until(lambda: (context.jobs.get(job.id).progress or {}).get("epoch", 0) > 3)
        context.jobs.cancel(job.id)
        wait_until(lambda: context.jobs.get(job.id).status == CANCELLED)
        assert context.checkpoints.exists(job.id)
        reached = (context.jobs.get(job.id).progress or {})["epoch"]
        context.jobs.resume(job.id)
        context.queue.send(job.id)
        wait_until(lambda: (context.jobs.get(job.id).progress or {})["epoch"] > reached)
        context.jobs.cancel(job.id)
        assert wait_for(context, job, CANCELLED).attempt == 2


def test_sigterm_hands_the_job_back(context: Context, dataset: str) -> None:
    job = train_job(context, dataset, ENDLESS)
    with worker(context) as process:
        wait_for(context, job, RUNNING)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0  # 3 s here; the service kills it after 10
    assert context.jobs.get(job.id).status == QUEUED
    assert context.checkpoints.exists(job.id)


def test_a_killed_workers_job_is_taken_over_when_its_lease_ends(
    context: Context, dataset: str
) -> None:
    job = train_job(context, dataset, replace(QUICK, epochs=1500))
    with worker(context) as process:
        wait_for(context, job, RUNNING)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert context.jobs.get(job.id).status == RUNNING
    with worker(context):
        done = wait_for(context, job, SUCCEEDED)
    assert done.attempt == 2
    assert len(context.registry.versions("line")) == 1


def test_several_workers_run_each_job_once(context: Context, dataset: str) -> None:
    jobs = [train_job(context, dataset) for _ in range(6)]
    with worker(context), worker(context):
        for job in jobs:
            context.queue.send(job.id)
            context.queue.send(job.id)
        for job in jobs:
            wait_for(context, job, SUCCEEDED)
    assert [v.version for v in context.registry.versions("line")] in (
        [*range(1, 7)],
        [*range(6, 0, -1)],
    )
    assert {context.jobs.get(job.id).attempt for job in jobs} == {1}


def test_a_busy_metrics_port_is_refused_by_name(context: Context) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        taken_port = str(taken.getsockname()[1])
        with worker(context, CREDENCE_WORKER_METRICS_PORT=taken_port) as process:
            assert process.wait(timeout=60) != 0
