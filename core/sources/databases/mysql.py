"""MySQL and MariaDB: one SELECT in a transaction that only reads, in a child process.

The protocol takes one statement. That it is a SELECT, and writes no file (`INTO OUTFILE`), the
server itself says: it explains it as a subquery, where nothing else can stand.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pymysql
from pymysql.cursors import SSCursor
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from core.exceptions import Invalid, Unavailable
from core.process.confined import Json
from core.sources.budget import Budget
from core.sources.databases import query as queries
from core.sources.databases.rows import QUERY, write_rows
from core.sources.secrets import ServerSecret

CONNECT_SECONDS = 10
PORT = 3306
_AWAY = (2003, 2006, 2013, 1927)  # not there, or gone
_STOPPED = (1969, 3024, 1317)  # by the server, when its limit is reached


def read(secret: ServerSecret, query: str, to: Path, budget: Budget) -> int:
    """Write the result of a query to an Arrow file. Returns the number of rows.

    Raises:
        Invalid: the query is no SELECT, or fails; the message is the server's.
        Unavailable: the server does not answer.
        TooLarge: it takes too long, or returns too much.
    """
    return queries.run(f"{__name__}:write", secret, query, to, budget, seconds=budget.seconds)


def write(file: BinaryIO, url: str, query: str, max_bytes: int, seconds: float) -> Json:
    """In the child: run the query and write its rows as an Arrow file."""
    budget, query = Budget(max_bytes, seconds), query.strip().removesuffix(";")
    with _cursor(url, budget) as cursor:
        cursor.execute(f"EXPLAIN SELECT * FROM ({query}\n) AS source")  # noqa: S608 - it is theirs
        cursor.fetchall()
        cursor.execute(query)
        if not cursor.description:
            raise Invalid([(QUERY, "give one SELECT")])
        names = [column[0] for column in cursor.description]
        return {"rows": write_rows(names, cursor, file, budget)}


@contextmanager
def _cursor(address: str, budget: Budget) -> Iterator[Any]:
    connection = _connect(address, budget)
    cursor: Any = SSCursor(connection)
    try:
        _limit(cursor, budget)
        yield cursor
    except pymysql.MySQLError as error:
        number, message = (*error.args, 0, "")[:2] if error.args else (0, "")
        _ = budget.left_seconds
        if number in _STOPPED:
            raise Invalid([(QUERY, "the database stopped the query: it takes too long")]) from None
        if number in _AWAY:
            raise Unavailable("the database does not answer any more") from None
        raise Invalid([(QUERY, f"the database: {str(message)[:500]}")]) from None
    finally:
        cursor.connection = None  # it would read the rest of the result
        connection.close()


def _connect(address: str, budget: Budget) -> Any:
    try:
        url = make_url(address)
        authority = url.query.get("ssl_ca")
        return pymysql.connect(
            host=url.host or "localhost",
            port=url.port or PORT,
            user=url.username,
            password=url.password or "",
            database=url.database,
            charset="utf8mb4",
            connect_timeout=CONNECT_SECONDS,
            read_timeout=budget.left_seconds,
            ssl=None if authority is None else {"ca": authority},
        )
    except (pymysql.MySQLError, ArgumentError, ValueError):
        raise Unavailable("the database does not answer, or refuses the secret") from None


def _limit(cursor: Any, budget: Budget) -> None:
    """Time limits, of MySQL and of MariaDB, and a transaction that only reads."""
    seconds = budget.left_seconds
    for setting in (
        f"max_execution_time = {max(1, int(seconds * 1000)):d}",
        f"max_statement_time = {seconds:.3f}",
    ):
        with suppress(pymysql.OperationalError):  # the other one's
            cursor.execute(f"SET SESSION {setting}")
    cursor.execute("SET SESSION TRANSACTION READ ONLY")
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
