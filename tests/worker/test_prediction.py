"""Offline predictions by real workers: whoever is killed, the result is whole and right."""

import io
import signal
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet

from core.context import Context
from core.jobs.jobs import Job, JobStatus, PredictSpec
from core.jobs.results import join
from core.predictions.blocks import BLOCK_BYTES, MAX_BLOCK_ROWS, block_rows
from models.artifact.files import read_model
from models.prediction.options import PredictOptions
from tests.waiting import wait_until
from tests.worker.conftest import QUICK, add_line, train_job, wait_for, worker
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner

ROWS = 200  # of a long chunk: seconds, with thousands of samples


@pytest.fixture
def runner(context: Context) -> JobRunner:
    return JobRunner(context, "test-worker", WorkerMetrics(), lambda: False)


@pytest.fixture
def trained(context: Context, dataset: str, runner: JobRunner) -> str:
    """A model `line` and the data set that it knows."""
    train_job(context, dataset, replace(QUICK, epochs=2))
    runner.wake()
    return dataset


def predict_job(context: Context, dataset: str, *, samples: int = 100, chunk_rows: int = 60) -> Job:
    """A queued job over all rows; no wake-up is sent."""
    spec = PredictSpec(
        model="line",
        dataset=dataset,
        version=1,
        samples=samples,
        seed=7,
        intervals=(0.9,),
        sampler="monte_carlo",
        chunk_rows=chunk_rows,
    )
    return context.jobs.create_batch(spec, context.datasets.get(dataset).rows)


def check_result(context: Context, job: Job) -> None:
    """Every row once, in order, as the model predicts them all together."""
    spec = PredictSpec.model_validate(job.spec)
    model = read_model(context.registry.path(context.registry.get("line", 1)))
    expected = model.predict(context.datasets.columns(job.dataset), spec)
    content = b"".join(join(context.results.paths(job.id)))
    table = parquet.read_table(io.BytesIO(content))
    for name, values in (
        ("mean", expected.mean),
        ("epistemic_variance", expected.variance["epistemic"]),
        ("lower_0.9", expected.intervals[0].lower),
    ):
        found = table.column(name).to_numpy()
        assert np.allclose(found, values, rtol=1e-4, atol=1e-5)  # float32, in another order


def test_several_workers_share_the_chunks(context: Context, trained: str) -> None:
    job = predict_job(context, trained, chunk_rows=10)
    with worker(context), worker(context):
        for job_id in context.jobs.queued_ids(job.id):
            context.queue.send(job_id)
        done = wait_for(context, job, JobStatus.SUCCEEDED)
    assert (done.attempt, done.progress and done.progress["chunks"]) == (1, 20)
    assert {chunk.attempt for chunk in context.jobs.parts(job.id)} == {1}
    check_result(context, job)


def test_a_worker_killed_in_the_middle_of_a_chunk_loses_that_chunk_alone(
    context: Context, trained: str
) -> None:
    """The first chunk is done; the second is long, and its worker is killed."""
    job = predict_job(context, add_line(context, 3 * ROWS), samples=4000, chunk_rows=ROWS)
    first, second, _ = context.jobs.parts(job.id)
    with worker(context) as process:
        context.queue.send(first.id)
        context.queue.send(second.id)
        wait_until(lambda: context.jobs.get(second.id).status is JobStatus.RUNNING)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert context.jobs.get(second.id).status is JobStatus.RUNNING
    assert context.jobs.get(job.id).status is JobStatus.RUNNING
    with worker(context):
        wait_for(context, job, JobStatus.SUCCEEDED)
    assert [chunk.attempt for chunk in context.jobs.parts(job.id)] == [1, 2, 1]
    check_result(context, job)


def test_a_stopping_worker_gives_its_chunk_back(context: Context, trained: str) -> None:
    job = predict_job(context, trained, chunk_rows=1000)
    metrics = WorkerMetrics()
    asked = iter(range(100))
    stopping = JobRunner(context, "stopping", metrics, lambda: next(asked) > 0)
    [chunk] = context.jobs.parts(job.id)
    stopping.wake()
    assert context.jobs.get(chunk.id).status is JobStatus.QUEUED
    assert context.jobs.get(job.id).status is JobStatus.RUNNING
    JobRunner(context, "next", metrics, lambda: False).wake()
    assert context.jobs.get(job.id).status is JobStatus.SUCCEEDED
    check_result(context, job)


def test_a_chunk_that_cannot_be_predicted_fails_the_job(
    context: Context, trained: str, runner: JobRunner
) -> None:
    other = context.datasets.add_columns("other", {"z": [1.0, 2.0, 3.0]})[0].id
    job = predict_job(context, other, chunk_rows=1)
    for _ in context.jobs.queued_ids(job.id):
        runner.wake()
    failed = context.jobs.get(job.id)
    assert failed.status is JobStatus.FAILED
    assert failed.error is not None
    assert failed.error["code"] == "invalid_data"
    assert "'x'" in failed.error["message"]
    assert [chunk.attempt for chunk in context.jobs.parts(job.id)] == [1, 0, 0]


def test_rows_in_memory_are_bounded_by_what_they_take(context: Context, trained: str) -> None:
    version = context.registry.get("line", 1)
    model = read_model(context.registry.path(version))
    assert block_rows(model, PredictOptions()) == MAX_BLOCK_ROWS
    wide = replace(model, encoder=replace(model.encoder, encoders=model.encoder.encoders * 10**4))
    assert block_rows(wide, PredictOptions()) * 2 * wide.encoder.width * 8 <= BLOCK_BYTES
