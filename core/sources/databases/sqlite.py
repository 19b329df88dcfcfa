"""SQLite: the file opened to be read, and an authoriser that lets a query do nothing else.

In a child process that can be killed: SQLite looks at no clock within a function, and
`instr(hex(zeroblob(4000000)), …)` takes hours.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from core.exceptions import Invalid
from core.process.confined import Json
from core.sources.budget import Budget
from core.sources.databases import query as queries
from core.sources.databases.rows import QUERY, write_rows
from core.sources.secrets import FileSecret

STEPS = 100_000  # of SQLite's machine between two looks at the clock
MAX_VALUE_BYTES = 2**24
_ALLOWED = (
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
)
_REFUSED = ("load_extension", "readfile", "writefile", "edit", "fts3_tokenizer")


def read(secret: FileSecret, query: str, to: Path, budget: Budget) -> int:
    """Write the result of a query to an Arrow file. Returns the number of rows.

    Raises:
        Invalid: the query is no SELECT, or fails; the message is SQLite's.
        Unavailable: the file cannot be opened.
        TooLarge: it takes too long, or returns too much.
    """
    return queries.run(f"{__name__}:write", secret, query, to, budget, seconds=budget.seconds)


def write(file: BinaryIO, path: str, query: str, max_bytes: int, seconds: float) -> Json:
    """In the child: run the query and write its rows as an Arrow file."""
    budget = Budget(max_bytes, seconds)
    with closing(sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_authorise)
        connection.set_progress_handler(lambda: _is_over(budget), STEPS)
        try:
            cursor = connection.execute(query)
            if cursor.description is None:
                raise Invalid([(QUERY, "give one SELECT")])
            names = [column[0] for column in cursor.description]
            return {"rows": write_rows(names, cursor, file, budget)}
        except (sqlite3.Error, sqlite3.Warning) as error:
            _ = budget.left_seconds  # raises if that is why
            raise Invalid([(QUERY, f"the database: {str(error)[:500]}")]) from None


def _authorise(action: int, _: object, name: str | None, *__: object) -> int:
    if action not in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and name in _REFUSED):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _is_over(budget: Budget) -> bool:
    try:
        return budget.left_seconds <= 0
    except Exception:
        return True
