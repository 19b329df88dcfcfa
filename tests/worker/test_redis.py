"""Workers on a real Redis: whichever of the two dies, each job runs once."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.context import Context
from core.exceptions import Unavailable
from core.jobs.jobs import Job, JobStatus
from tests.core.redis_server import RedisServer, running_redis
from tests.waiting import PATIENCE, wait_until
from tests.worker.conftest import (
    ENDLESS,
    QUICK,
    add_line,
    logged,
    opened,
    train_job,
    wait_for,
    worker,
)

pytestmark = pytest.mark.stack
SUCCEEDED = JobStatus.SUCCEEDED


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path) as server:
        yield server


@pytest.fixture
def context(redis: RedisServer, tmp_path: Path) -> Iterator[Context]:
    with opened(tmp_path / "data", broker_url=redis.url) as made:
        yield made


def test_a_worker_outlives_its_broker(context: Context, redis: RedisServer) -> None:
    """Idle and busy, with a broker that comes back empty; then it stops as it should."""
    dataset = add_line(context)

    def sent(training: object = QUICK) -> Job:
        job = train_job(context, dataset, training)
        context.queue.send(job.id)
        return job

    with worker(context, CREDENCE_BROKER_URL=redis.url) as process:
        first = sent()
        wait_for(context, first, SUCCEEDED)
        redis.stop()
        second = train_job(context, dataset)
        with pytest.raises(Unavailable):
            context.queue.send(second.id)
        redis.start()
        wait_for(context, second, SUCCEEDED)
        busy = sent(ENDLESS)
        wait_for(context, busy, JobStatus.RUNNING)
        redis.stop()
        redis.start()
        third = sent()
        context.jobs.cancel(busy.id)
        wait_for(context, third, SUCCEEDED)
        fourth = sent()
        wait_for(context, fourth, SUCCEEDED)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    jobs = (first, second, busy, third, fourth)
    assert {context.jobs.get(job.id).attempt for job in jobs} == {1}
    assert [v.version for v in context.registry.versions("line")] == [4, 3, 2, 1]


def test_a_killed_workers_job_is_continued(context: Context, redis: RedisServer) -> None:
    job = train_job(context, add_line(context), ENDLESS)
    often = {"CREDENCE_BROKER_URL": redis.url, "CREDENCE_CHECKPOINT_SECONDS": "0.5"}
    with worker(context, **often) as process:
        context.queue.send(job.id)
        wait_until(lambda: context.checkpoints.exists(job.id))
        process.send_signal(signal.SIGKILL)
        process.wait()
    with worker(context, **often, CREDENCE_LEASE_SECONDS="10"):
        wait_until(lambda: logged(context, job) == ["continues from a checkpoint"])
        context.jobs.cancel(job.id)
        wait_until(lambda: context.jobs.get(job.id).status == JobStatus.CANCELLED)
    assert context.jobs.get(job.id).attempt == 2


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
        assert process.wait(PATIENCE) == 0
    assert context.jobs.get(job.id).status == JobStatus.QUEUED
