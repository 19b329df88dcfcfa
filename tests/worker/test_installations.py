"""The main job on both installations, with real workers: trained, interrupted, predicted."""

import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from core.context import Context
from core.jobs.jobs import JobStatus
from tests.waiting import wait_until
from tests.worker.conftest import QUICK, add_line, train_job, wait_for, worker
from tests.worker.installations import LAPTOP, Installation, running_production
from tests.worker.test_prediction import check_result, predict_job

LONG = replace(QUICK, epochs=300)  # seconds


@pytest.fixture(scope="module")
def production() -> Iterator[Installation]:
    with running_production() as found:
        yield found


@pytest.fixture(params=["laptop", "production"])
def installation(request: pytest.FixtureRequest) -> Installation:
    if request.param == "laptop":
        return LAPTOP
    found: Installation = request.getfixturevalue("production")
    return found


@pytest.fixture
def context(installation: Installation, tmp_path: Path) -> Iterator[Context]:
    with installation.context(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def machines(installation: Installation, context: Context) -> Iterator[list[Path]]:
    """The data directories of two workers: others than the API's, where that may be."""
    with ExitStack() as stack:
        own = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        yield own if installation.is_spread else [context.settings.data_dir] * 2


def test_a_job_moves_to_another_machine_and_its_model_predicts(
    context: Context, installation: Installation, machines: list[Path]
) -> None:
    first, second = ({"CREDENCE_DATA_DIR": str(path)} for path in machines)
    job = train_job(context, add_line(context), LONG, alias="champion")
    context.queue.send(job.id)
    with worker(context, **installation.environment, **first) as process:
        wait_until(lambda: (context.jobs.get(job.id).progress or {}).get("epoch", 0) > 20)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert context.jobs.get(job.id).status == JobStatus.QUEUED
    assert context.checkpoints.exists(job.id)
    with worker(context, **installation.environment, **second):
        done = wait_for(context, job, JobStatus.SUCCEEDED)
        assert (done.attempt, done.version) == (2, 1)
        logged = [event.data for event in context.jobs.events(job.id) if event.type == "log"]
        assert logged == [{"message": "continues from a checkpoint"}]
        wait_until(lambda: not context.checkpoints.exists(job.id))
        batch = predict_job(context, job.dataset, chunk_rows=60)
        for job_id in context.jobs.queued_ids(batch.id):
            context.queue.send(job_id)
        wait_for(context, batch, JobStatus.SUCCEEDED)
    assert context.registry.get("line", "champion").job == job.id
    assert len(context.jobs.parts(batch.id)) == 4
    check_result(context, batch)
