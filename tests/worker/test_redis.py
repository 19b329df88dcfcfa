"""Workers on a real Redis: whichever of the two dies, each job runs once."""

import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.context import Context, open_context
from core.exceptions import Unavailable
from core.jobs.jobs import JobStatus
from core.settings import load_settings
from tests.core.redis_server import RedisServer, running_redis
from tests.waiting import wait_until
from tests.worker.conftest import QUICK, add_line, train_job, wait_for, worker

RUNNING, SUCCEEDED = JobStatus.RUNNING, JobStatus.SUCCEEDED
LONG = replace(QUICK, epochs=300)  # seconds


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path) as server:
        yield server


@pytest.fixture
def context(redis: RedisServer, tmp_path: Path) -> Iterator[Context]:
    settings = load_settings(data_dir=tmp_path / "data", broker_url=redis.url, lease_seconds=3)
    opened = open_context(settings)
    yield opened
    opened.close()


def test_a_worker_outlives_its_broker(context: Context, redis: RedisServer) -> None:
    """Idle and busy, with a broker that comes back empty; then it stops as it should."""
    dataset = add_line(context)
    with worker(context, CREDENCE_BROKER_URL=redis.url) as process:
        first = train_job(context, dataset)
        context.queue.send(first.id)
        wait_for(context, first, SUCCEEDED)

        redis.stop()
        second = train_job(context, dataset)
        with pytest.raises(Unavailable):
            context.queue.send(second.id)
        redis.start()
        wait_for(context, second, SUCCEEDED)

        third = train_job(context, dataset, LONG)
        context.queue.send(third.id)
        wait_for(context, third, RUNNING)
        redis.stop()
        redis.start()
        fourth = train_job(context, dataset)
        context.queue.send(fourth.id)
        wait_for(context, fourth, SUCCEEDED)

        fifth = train_job(context, dataset)
        context.queue.send(fifth.id)
        wait_for(context, fifth, SUCCEEDED)
        assert {context.jobs.get(job.id).attempt for job in (first, second, third, fourth)} == {1}
        assert [v.version for v in context.registry.versions("line")] == [5, 4, 3, 2, 1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_a_killed_workers_job_is_finished_by_another_from_its_checkpoint(
    context: Context, redis: RedisServer
) -> None:
    job = train_job(context, add_line(context), LONG)
    often = {"CREDENCE_BROKER_URL": redis.url, "CREDENCE_CHECKPOINT_SECONDS": "0.5"}
    with worker(context, **often) as process:
        context.queue.send(job.id)
        wait_until(lambda: context.checkpoints.exists(job.id))
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert context.jobs.get(job.id).status == RUNNING
    with worker(context, **often):
        assert wait_for(context, job, SUCCEEDED).version == 1
        wait_until(lambda: not context.checkpoints.exists(job.id))
    assert context.jobs.get(job.id).attempt == 2
    assert len(context.registry.versions("line")) == 1
    logged = [event.data for event in context.jobs.events(job.id) if event.type == "log"]
    assert logged == [{"message": "continues from a checkpoint"}]


DEAF = """
import worker.main as main, worker.sweeper as sweeper
from core.settings import load_settings

options = main.celery_options
main.celery_options = lambda settings: options(settings) | {"task_queues": {"other": {}}}
sweeper._BEAT_SECONDS = 0.05
main.run_worker(load_settings())
"""


def test_a_worker_that_hears_nothing_ends(context: Context, redis: RedisServer) -> None:
    """It listens to another queue than the one that it sends to."""
    job = train_job(context, add_line(context))
    with worker(context, ["-c", DEAF], CREDENCE_BROKER_URL=redis.url) as process:
        assert process.wait(timeout=60) == 0
    assert context.jobs.get(job.id).status == JobStatus.QUEUED
