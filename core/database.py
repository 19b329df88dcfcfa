"""The database: transactions that mean the same on SQLite and on PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from core.exceptions import Unavailable

BUSY_TIMEOUT_SECONDS = 30  # how long a SQLite writer waits for the one before it
CONNECT_TIMEOUT_SECONDS = 5
MIGRATION_LOCK = 0x63726564  # "cred": any number, but the same in every process


class Database:
    """An engine, and sessions in transactions on it. Cheap to build; connects on first use."""

    def __init__(self, url: str) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _sqlite(url) if self.is_sqlite else _postgresql(url)
        self._writers = sessionmaker(self.engine, expire_on_commit=False)
        reading = self.engine.execution_options(begin="BEGIN DEFERRED")
        self._readers = sessionmaker(reading, expire_on_commit=False)

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A session whose changes are committed together at the end, or not at all.

        On SQLite it takes the write lock at once, so that what it has read stays true until it
        commits; PostgreSQL gets the same from the row locks of the statements inside.

        Raises:
            Unavailable: when the database cannot be reached.
        """
        with _translated(), self._writers.begin() as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for queries alone: it waits for no writer."""
        with _translated(), self._readers() as session:
            yield session

    def check(self) -> None:
        """Raise `Unavailable` when no query is answered."""
        with self.read() as session:
            session.execute(text("SELECT 1"))

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def migrate(database: Database) -> None:
    """Bring the schema to this release; processes that start at once wait for each other."""
    config = Config()
    config.set_main_option("script_location", "core:migrations")
    with _translated(), database.engine.begin() as connection:
        if not database.is_sqlite:  # SQLite's BEGIN IMMEDIATE is such a lock already
            lock = text("SELECT pg_advisory_xact_lock(:key)")
            connection.execute(lock, {"key": MIGRATION_LOCK})
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


@contextmanager
def _translated() -> Iterator[None]:
    """Tell an unreachable database from a wrong query."""
    try:
        yield
    except OperationalError as error:
        raise Unavailable(f"the database does not answer: {type(error.orig).__name__}") from error
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
        raise Unavailable("the connection to the database was lost") from error


def _to_json(value: Any) -> str:
    """Strict JSON: numbers that are not finite become null, NumPy's become numbers."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _sqlite(url: str) -> Engine:
    path = make_url(url).database
    if path and path != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url, json_serializer=_to_json, connect_args={"timeout": BUSY_TIMEOUT_SECONDS}
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions on its own
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    connection.exec_driver_sql(options.get("begin", "BEGIN IMMEDIATE"))


def _postgresql(url: str) -> Engine:
    return create_engine(
        url,
        json_serializer=_to_json,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
    )
