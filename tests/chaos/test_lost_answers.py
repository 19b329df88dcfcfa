"""A commit that was done though its answer was lost: what it refers to must be there.

The connection breaks right after COMMIT, as when a server dies at that moment.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, exc

from core.context import Context
from core.exceptions import Unavailable
from core.jobs.jobs import ChunkSpec, JobStatus, PredictSpec
from tests.chaos.invariants import violations
from tests.worker.conftest import QUICK, train_job
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner


@contextmanager
def _answers_lost(context: Context, statement: str) -> Iterator[None]:
    """Of the transactions in which such a statement was executed."""
    seen = False

    def look(*arguments: object) -> None:
        nonlocal seen
        seen = seen or str(arguments[2]).startswith(statement)

    def commit(connection: Connection) -> None:
        if seen:
            connection.exec_driver_sql("COMMIT")
            raise exc.OperationalError("COMMIT", None, Exception("the connection was lost"))

    engine = context.database.engine
    event.listen(engine, "before_cursor_execute", look)
    event.listen(engine, "commit", commit)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", look)
        event.remove(engine, "commit", commit)


def test_a_data_set_that_is_there_after_all_has_its_rows(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    with _answers_lost(context, "INSERT INTO datasets"), pytest.raises(Unavailable):
        context.datasets.add("line", "text/csv", path)
    again, created = context.datasets.add("line", "text/csv", path)
    assert not created
    assert len(context.datasets.rows(again.id)) == 2


def test_a_version_that_is_there_after_all_has_its_artifact(
    context: Context, dataset: str, tmp_path: Path
) -> None:
    job = train_job(context, dataset, QUICK, pruning=())
    claim = context.jobs.claim(job.id, "worker", 60)
    assert claim is not None
    artifact = tmp_path / "artifact"
    artifact.mkdir()
    (artifact / "model.json").write_text("{}")
    with _answers_lost(context, "INSERT INTO versions"), pytest.raises(Unavailable):
        context.registry.publish(claim, "line", artifact, {}, dataset)
    assert context.jobs.get(job.id).status == JobStatus.SUCCEEDED
    assert (context.registry.path(context.registry.get("line")) / "model.json").exists()


def test_a_chunk_that_is_done_after_all_has_its_rows(context: Context, dataset: str) -> None:
    runner = JobRunner(context, "worker", WorkerMetrics(), lambda: False)
    train_job(context, dataset, QUICK, pruning=())
    runner.wake()
    spec = PredictSpec(
        model="line",
        dataset=dataset,
        version=1,
        samples=10,
        seed=1,
        sampler="monte_carlo",
        chunk_rows=1000,
    )
    job = context.jobs.create_batch(spec, 200)
    (chunk,) = context.jobs.parts(job.id)
    claim = context.jobs.claim(chunk.id, "worker", 60)
    assert claim is not None
    part = context.settings.data_dir / "part"
    part.write_text("rows")
    with _answers_lost(context, "UPDATE jobs"), pytest.raises(Unavailable):
        context.results.publish(claim, ChunkSpec.model_validate(chunk.spec), part)
    assert context.jobs.get(job.id).status == JobStatus.SUCCEEDED
    assert [path.read_text() for path in context.results.paths(job.id)] == ["rows"]


def test_what_was_not_committed_is_swept(context: Context, dataset: str, tmp_path: Path) -> None:
    job = train_job(context, dataset, QUICK, pruning=())
    claim = context.jobs.claim(job.id, "worker", 60)
    assert claim is not None
    artifact = tmp_path / "artifact"
    artifact.mkdir()
    context.store.put_directory(f"models/line/{job.id}-1", artifact)
    context.jobs.cancel(job.id)
    context.jobs.release(claim)
    assert violations(context) == []
    assert not context.store.exists(f"models/line/{job.id}-1")
