"""PostgreSQL: a cursor in a transaction that only reads, in a child process.

`DECLARE … CURSOR FOR` takes one SELECT by PostgreSQL's own grammar; nothing else can stand there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, BinaryIO

import psycopg

from core.exceptions import Invalid, Unavailable
from core.process.confined import Json
from core.sources.budget import Budget
from core.sources.databases import query as queries
from core.sources.databases.rows import BATCH_BYTES, BATCH_ROWS, QUERY, Row, size_of, write_rows
from core.sources.secrets import ServerSecret

CONNECT_SECONDS = 10
FIRST_ROWS = 100  # that are fetched at once, before it is known how large they are


def read(secret: ServerSecret, query: str, to: Path, budget: Budget) -> int:
    """Write the result of a query to an Arrow file. Returns the number of rows.

    Raises:
        Invalid: the query is no SELECT, or fails; the message is PostgreSQL's.
        Unavailable: the server does not answer.
        TooLarge: it takes too long, or returns too much.
    """
    return queries.run(f"{__name__}:write", secret, query, to, budget, seconds=budget.seconds)


def write(file: BinaryIO, url: str, query: str, max_bytes: int, seconds: float) -> Json:
    """In the child: run the query and write its rows as an Arrow file."""
    budget = Budget(max_bytes, seconds)
    with _connected(url, budget) as connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        milliseconds = max(1, int(budget.left_seconds * 1000))
        connection.execute(f"SET LOCAL statement_timeout = {milliseconds:d}")
        with connection.cursor("source") as cursor:
            cursor.execute(query.strip().removesuffix(";"))
            names = [column.name for column in cursor.description or ()]
            return {"rows": write_rows(names, _fetched(cursor), file, budget)}


def _fetched(cursor: Any) -> Iterator[Row]:
    """The rows. The driver holds all that are fetched at once: of large ones fewer."""
    wanted = FIRST_ROWS
    while rows := cursor.fetchmany(wanted):
        largest = max(map(size_of, rows))
        yield from rows
        wanted = min(BATCH_ROWS, 1 + BATCH_BYTES // (1 + largest))


@contextmanager
def _connected(url: str, budget: Budget) -> Iterator[psycopg.Connection]:
    """A connection whose query is cancelled when the time is over, whatever the query sets."""
    try:
        connection = psycopg.connect(url, connect_timeout=CONNECT_SECONDS)
    except psycopg.Error:
        raise Unavailable("the database does not answer, or refuses the secret") from None
    stopper = Timer(budget.left_seconds, connection.cancel)
    stopper.daemon = True
    stopper.start()
    try:
        yield connection
    except psycopg.errors.QueryCanceled:
        _ = budget.left_seconds
        raise Invalid([(QUERY, "the database stopped the query: it takes too long")]) from None
    except psycopg.OperationalError as error:
        if "out of memory" in str(error) and error.diag.message_primary is None:
            raise MemoryError from None  # of the driver, in this process
        _ = budget.left_seconds
        raise Unavailable(f"the database: {_message(error)}") from None
    except psycopg.Error as error:
        raise Invalid([(QUERY, f"the database: {_message(error)}")]) from None
    finally:
        stopper.cancel()
        connection.close()


def _message(error: psycopg.Error) -> str:
    """What the server says of the query, never of the connection."""
    return (error.diag.message_primary or type(error).__name__)[:500]
