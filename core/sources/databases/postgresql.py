"""PostgreSQL: a cursor in a transaction that only reads.

`DECLARE … CURSOR FOR` takes one SELECT by PostgreSQL's own grammar; nothing else can stand there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import psycopg

from core.exceptions import Invalid, Unavailable
from core.sources.budget import Budget
from core.sources.databases.rows import QUERY, write_rows
from core.sources.secrets import ServerSecret

CONNECT_SECONDS = 10
BATCH = 10_000


def read(secret: ServerSecret, query: str, to: Path, budget: Budget) -> int:
    """Write the result of a query to an Arrow file. Returns the number of rows.

    Raises:
        Invalid: the query is no SELECT, or fails; the message is PostgreSQL's.
        Unavailable: the server does not answer.
        TooLarge: it takes too long, or returns too much.
    """
    with _connected(secret, budget) as connection:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        milliseconds = max(1, int(budget.left_seconds * 1000))
        connection.execute(f"SET LOCAL statement_timeout = {milliseconds:d}")
        with connection.cursor("source") as cursor:
            cursor.itersize = BATCH
            cursor.execute(query.strip().removesuffix(";"))
            names = [column.name for column in cursor.description or ()]
            return write_rows(names, cursor, to, budget)


@contextmanager
def _connected(secret: ServerSecret, budget: Budget) -> Iterator[psycopg.Connection]:
    """A connection whose query is cancelled when the time is over, whatever the query sets."""
    try:
        url = secret.url.get_secret_value()
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
