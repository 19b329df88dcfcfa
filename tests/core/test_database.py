"""Transactions, times, and the schema, the same on both databases."""

import multiprocessing
from datetime import UTC, datetime, timedelta, timezone
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import IntegrityError, StatementError

from core.clock import now
from core.context import open_context
from core.database.database import Database, migrate
from core.database.migrations import RECORD
from core.database.schema import AliasRow, Base, ModelRow, WorkerRow
from core.exceptions import Unavailable
from core.jobs.workers import Workers
from core.settings import load_settings
from tests.core.conftest import at_once, new_postgresql


def test_a_failing_transaction_changes_nothing(database: Database) -> None:
    def fail() -> None:
        with database.begin() as session:
            session.add(ModelRow(name="square", last_version=1))
            session.flush()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with database.read() as session:
        assert session.get(ModelRow, "square") is None


def test_what_is_read_in_a_transaction_stays_true(database: Database) -> None:
    """Read, think, write: of twenty increments by four threads none is lost."""
    with database.begin() as session:
        session.add(ModelRow(name="square", last_version=0))

    def increment(_: int) -> None:
        for _ in range(5):
            with database.begin() as session:
                row = session.get_one(ModelRow, "square", with_for_update=True)
                row.last_version += 1

    at_once(increment, 4)
    with database.read() as session:
        assert session.get_one(ModelRow, "square").last_version == 20


def test_readers_wait_for_no_writer(database: Database) -> None:
    with database.begin() as writer:
        writer.add(ModelRow(name="square", last_version=1))
        writer.flush()
        with database.read() as reader:  # one that waited would wait for ever, and be refused
            assert reader.get(ModelRow, "square") is None


def test_references_are_checked_and_a_wrong_statement_is_no_outage(database: Database) -> None:
    with pytest.raises(IntegrityError), database.begin() as session:
        session.add(AliasRow(model="none", alias="champion", version=1))
    with pytest.raises(sa.exc.DBAPIError), database.begin() as session:
        session.execute(sa.text("INSERT INTO models (name, last_version) VALUES ('a', NULL)"))


def test_times_come_back_in_utc(database: Database) -> None:
    rome = timezone(timedelta(hours=2))
    started = datetime(2026, 7, 1, 12, 0, 0, 123456, tzinfo=rome)
    workers = Workers(database)
    workers.beat("worker-1", "cpu", started)
    [worker] = workers.list()
    assert worker.started_at == started
    assert worker.started_at.tzinfo == UTC
    naive = datetime(2026, 7, 1)  # noqa: DTZ001
    with pytest.raises(StatementError):
        workers.beat("worker-1", "cpu", naive)


def test_workers_silent_for_a_day_are_forgotten(database: Database) -> None:
    workers = Workers(database)
    workers.beat("old", "cpu", now())
    with database.begin() as session:
        session.execute(sa.update(WorkerRow).values(heartbeat_at=now() - timedelta(days=2)))
    for _ in range(2):
        workers.beat("new", "cuda:0", now())
    assert [(worker.id, worker.device) for worker in workers.list()] == [("new", "cuda:0")]


@pytest.mark.parametrize(
    "url", ["postgresql+psycopg://nobody@127.0.0.1:1/none", "sqlite:////proc/none/credence.db"]
)
def test_a_database_that_does_not_answer_is_unavailable(url: str) -> None:
    with pytest.raises((Unavailable, OSError)) as failure:
        Database(url).check()
    assert "127.0.0.1" not in str(failure.value), "where it is, is nobody's business"


def test_migrations_give_the_schema_that_is_declared(database: Database) -> None:
    Workers(database).beat("worker-1", "cpu", now())
    migrate(database)
    database.check()
    assert len(Workers(database).list()) == 1, "migrating again changes nothing"
    with database.engine.connect() as connection:
        options = {"compare_type": True, "include_name": lambda name, *_: name != RECORD.name}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, Base.metadata) == []


def _start(folder: Path, urls: list[str], start: Barrier) -> None:
    """One of several processes that open new files, then migrate, at the same moments."""
    for number in range(20):
        start.wait(timeout=300)
        Database(f"sqlite:///{folder / str(number)}.db").check()
    for url in urls:
        database = Database(url)
        start.wait(timeout=300)
        migrate(database)
        Workers(database).beat(multiprocessing.current_process().name, "cpu", now())
        database.dispose()


@pytest.mark.stack
def test_processes_at_once_migrate_once(tmp_path: Path, postgresql_url: str) -> None:
    """Four processes. Of those that open a new file one changes the journal, which must not be an
    outage for the others. Then they migrate a new SQLite file and a new PostgreSQL database.
    """
    urls = [f"sqlite:///{tmp_path / 'new.db'}", new_postgresql(postgresql_url, "racing")]
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(4)
    processes = [context.Process(target=_start, args=(tmp_path, urls, start)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    for url in urls:
        database = Database(url)
        assert len(Workers(database).list()) == 4
        database.dispose()


def test_a_service_starts_without_its_broker_and_not_without_its_database(tmp_path: Path) -> None:
    away = load_settings(data_dir=tmp_path, broker_url="redis://127.0.0.1:1/0")
    open_context(away).close()
    url = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(Unavailable):
        open_context(load_settings(data_dir=tmp_path, database_url=url))
