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
from core.jobs.jobs import ChunkSpec, Claim, Job, JobStatus
from tests.chaos.conftest import Stage
from tests.worker.conftest import train_job


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


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    folder = tmp_path / "artifact"
    folder.mkdir()
    (folder / "model.json").write_text("{}")
    return folder


def _claim(context: Context, job: Job) -> Claim:
    claim = context.jobs.claim(job.id, "worker", 60)
    assert claim is not None
    return claim


def test_a_data_set_that_is_there_after_all_has_its_rows(stage: Stage, tmp_path: Path) -> None:
    datasets, path = stage.context.datasets, tmp_path / "table.csv"
    path.write_text("x,y\n1,2\n3,4\n")
    with _answers_lost(stage.context, "INSERT INTO datasets"), pytest.raises(Unavailable):
        datasets.add("line", "text/csv", path)
    again, created = datasets.add("line", "text/csv", path)
    assert not created
    assert len(datasets.rows(again.id)) == 2


def test_what_is_published_after_all_has_its_files(stage: Stage, artifact: Path) -> None:
    """A version has its artifact, a part of a result its rows."""
    context = stage.context
    job = train_job(context, stage.dataset)
    with _answers_lost(context, "INSERT INTO versions"), pytest.raises(Unavailable):
        context.registry.publish(_claim(context, job), "line", artifact, {}, stage.dataset)
    assert context.jobs.get(job.id).status == JobStatus.SUCCEEDED
    assert (context.registry.path(context.registry.get("line")) / "model.json").exists()

    whole = stage.batch()
    (chunk,) = context.jobs.parts(whole.id)
    part = context.settings.data_dir / "part"
    part.write_text("rows")
    claim, spec = _claim(context, chunk), ChunkSpec.model_validate(chunk.spec)
    with _answers_lost(context, "UPDATE jobs"), pytest.raises(Unavailable):
        context.results.publish(claim, spec, part)
    assert context.jobs.get(whole.id).status == JobStatus.SUCCEEDED
    assert [path.read_text() for path in context.results.paths(whole.id)] == ["rows"]
