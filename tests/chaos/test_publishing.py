"""Death between every two writes of what is published, and commits whose answer was lost:

all of it is there in the end, once.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, exc

from core.context import Context
from core.exceptions import Unavailable
from core.jobs.jobs import ChunkSpec, Claim, Job, JobStatus
from tests.chaos.conftest import Stage
from tests.chaos.invariants import violations
from tests.worker.conftest import train_job

MOST_WRITES = 200  # far more than there are
STRIDE = int(os.environ.get("CHAOS_STRIDE", "5"))  # `make chaos` dies at every write of a model


def _die_everywhere(stage: Stage, live: Callable[[int], int], stride: int = 1) -> int:
    """Do it again, each time with a death some writes later, until it comes through; the deaths."""
    for deaths, write in enumerate(range(1, MOST_WRITES, stride)):
        code = live(write)
        assert violations(stage.context) == [], f"after write {write}"
        if code == 0:
            return deaths
        assert code == -signal.SIGKILL, stage.log.read_text()
    raise AssertionError("no end of writes")


def _die_in_jobs(stage: Stage, make: Callable[[], Job], stride: int = 1) -> int:
    def live(write: int) -> int:
        job = make()
        code = stage.run("run_job", deadly_write=write)
        stage.runner.wake()
        assert stage.context.jobs.get(job.id).status == JobStatus.SUCCEEDED, f"after write {write}"
        return code

    return _die_everywhere(stage, live, stride)


def test_a_model_is_published_once_wherever_its_worker_dies(stage: Stage) -> None:
    registry = stage.context.registry

    def make() -> Job:
        return train_job(stage.context, stage.dataset, pruning=(), alias="champion")

    deaths = _die_in_jobs(stage, make, STRIDE)
    assert deaths * STRIDE > 10, "files, folders and transactions are all counted"
    assert len(registry.versions("line")) == deaths + 1
    assert registry.get("line", "champion").version == deaths + 1


def test_a_part_of_a_result_is_there_once_wherever_its_worker_dies(stage: Stage) -> None:
    train_job(stage.context, stage.dataset, pruning=())
    stage.runner.wake()
    assert _die_in_jobs(stage, stage.batch) > 4


def test_a_data_set_is_there_or_not_wherever_the_service_dies(stage: Stage, tmp_path: Path) -> None:
    """Sent again, it is there: whole, once, and with its rows."""
    path, datasets = tmp_path / "table.csv", stage.context.datasets

    def live(write: int) -> int:
        path.write_text("x,y\n" + f"{write},2\n" * 5)
        code = stage.run("add_dataset", path=str(path), deadly_write=write)
        assert len(datasets.rows(datasets.add("line", "text/csv", path)[0].id)) == 5
        return code

    assert _die_everywhere(stage, live) > 3


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
