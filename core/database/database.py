"""The database: transactions that behave the same on SQLite and on PostgreSQL."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Connection, Engine, create_engine, event, exc, make_url, text
from sqlalchemy.orm import Session, sessionmaker

from core.database.migrations import upgrade
from core.exceptions import Unavailable
from core.process.disks import disk_refuses

__all__ = ["Database", "migrate", "opened"]

BUSY_TIMEOUT_SECONDS = 10  # for a SQLite writer that waits for another
BUSY_PAUSE_SECONDS = 0.01
CONNECT_TIMEOUT_SECONDS = 3
POOL_TIMEOUT_SECONDS = 10


class Database:
    """A database engine and its sessions. It connects on first use."""

    def __init__(self, url: str) -> None:
        self.is_sqlite = make_url(url).get_backend_name() == "sqlite"
        self.engine = _sqlite(url) if self.is_sqlite else _postgresql(url)
        self._writers = sessionmaker(self.engine, expire_on_commit=False)
        reading = self.engine.execution_options(begin="BEGIN DEFERRED")
        self._readers = sessionmaker(reading, expire_on_commit=False)

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A session whose changes are committed together at the end, or not at all.

        On SQLite it takes the write lock at once, so that rows that it has read do not change until
        it commits. On PostgreSQL the statements inside lock the rows.

        Raises:
            Unavailable: when the database cannot be reached.
        """
        with translated(), self._writers.begin() as session:
            yield session

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session for queries only. It does not wait for writers. Raises `Unavailable`."""
        with translated(), self._readers() as session:
            yield session

    def check(self) -> None:
        """Raise `Unavailable` unless a query works."""
        with self.read() as session:
            session.execute(text("SELECT 1"))

    def dispose(self) -> None:
        """Close all connections."""
        self.engine.dispose()


@contextmanager
def opened(url: str) -> Iterator[Database]:
    """A database whose connections are closed at the end."""
    database = Database(url)
    try:
        yield database
    finally:
        database.dispose()


def migrate(database: Database) -> None:
    """Bring the schema to this release. Processes that start together wait for each other.

    Raises:
        Unavailable: when the database cannot be reached.
        InvalidSetting: when a later release has changed the schema so that this one cannot use it.
    """
    with translated(), database.engine.begin() as connection:
        upgrade(connection)


@contextmanager
def translated() -> Iterator[None]:
    """Raise `Unavailable` for a database that cannot be reached. Other errors pass."""
    try:
        yield
    except (exc.OperationalError, exc.TimeoutError) as error:
        if isinstance(error, exc.OperationalError) and _disk_refuses(error.orig):
            raise disk_refuses("the database", str(error.orig)) from error
        raise Unavailable("the database does not answer now") from error
    except exc.DBAPIError as error:
        if error.connection_invalidated:
            raise Unavailable("the connection to the database was lost") from error
        raise


def _disk_refuses(error: object) -> bool:
    """Whether SQLite could not write its file.

    PostgreSQL's disk errors are not shown: they may name files of another machine.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the other bits are details
    return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR)


def _to_json(value: Any) -> str:
    """Strict JSON: numbers that are not finite become null. NumPy's numbers are allowed."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY).decode()


def _sqlite(url: str) -> Engine:
    path = make_url(url).database
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        json_serializer=_to_json,
        json_deserializer=orjson.loads,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        connect_args={"timeout": BUSY_TIMEOUT_SECONDS},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin transactions on its own
    _write_ahead(connection)
    connection.execute("PRAGMA foreign_keys=ON")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Keep changes in a write-ahead log.

    On a new file only one process can do so. The others are refused at once, because SQLite's own
    timeout does not hold for this statement; so they try again.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return
        time.sleep(BUSY_PAUSE_SECONDS)


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    connection.exec_driver_sql(options.get("begin", "BEGIN IMMEDIATE"))


def _postgresql(url: str) -> Engine:
    return create_engine(
        url,
        json_serializer=_to_json,
        json_deserializer=orjson.loads,
        pool_pre_ping=True,
        pool_timeout=POOL_TIMEOUT_SECONDS,
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
    )
