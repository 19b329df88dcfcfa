"""The main job on what a stack has: trained on one machine, moved to another, predicted."""

import os
import secrets
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from core.context import Context
from core.jobs.jobs import JobStatus
from tests.core.postgresql import running_postgresql
from tests.core.redis_server import running_redis
from tests.core.s3 import BUCKET, running_rclone
from tests.waiting import PATIENCE, wait_until
from tests.worker.conftest import QUICK, add_line, logged, opened, train_job, wait_for, worker
from tests.worker.test_prediction import check_result, predict_job

pytestmark = pytest.mark.stack


@pytest.fixture
def production() -> Iterator[dict[str, str]]:
    """The environment of a process there: PostgreSQL, Redis and an S3 server."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        s3 = stack.enter_context(running_rclone(folder))
        assert s3.bucket
        yield s3.environment | {
            "CREDENCE_DATABASE_URL": stack.enter_context(running_postgresql()),
            "CREDENCE_BROKER_URL": stack.enter_context(running_redis(folder)).url,
            "CREDENCE_ARTIFACT_URL": f"s3://{BUCKET}/{secrets.token_hex(4)}",
        }


@pytest.fixture
def context(production: dict[str, str], tmp_path: Path) -> Iterator[Context]:
    with mock.patch.dict(os.environ, production), opened(tmp_path / "data") as made:
        yield made


def test_a_job_moves_machines(context: Context, production: dict[str, str], tmp_path: Path) -> None:
    """Each worker has a data directory of its own."""
    first, second = (
        production | {"CREDENCE_DATA_DIR": str(tmp_path / name)} for name in ("first", "second")
    )
    job = train_job(context, add_line(context), replace(QUICK, epochs=2000), alias="champion")
    context.queue.send(job.id)
    with worker(context, **first) as process:
        wait_until(lambda: (context.jobs.get(job.id).progress or {}).get("epoch", 0) > 20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert context.jobs.get(job.id).status == JobStatus.QUEUED
    assert context.checkpoints.exists(job.id)
    with worker(context, **second):
        done = wait_for(context, job, JobStatus.SUCCEEDED)
        assert (done.attempt, done.version) == (2, 1)
        assert logged(context, job) == ["continues from a checkpoint"]
        wait_until(lambda: not context.checkpoints.exists(job.id))
        batch = predict_job(context, job.dataset, chunk_rows=60)
        for job_id in context.jobs.queued_ids(batch.id):
            context.queue.send(job_id)
        wait_for(context, batch, JobStatus.SUCCEEDED)
    assert context.registry.get("line", "champion").job == job.id
    assert len(context.jobs.parts(batch.id)) == 4
    check_result(context, batch)
