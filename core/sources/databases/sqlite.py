"""SQLite: the file opened to be read, and an authoriser that lets a query do nothing else."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from core.exceptions import Invalid, Unavailable
from core.sources.budget import Budget
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
    try:
        connection = sqlite3.connect(f"file:{quote(str(secret.path))}?mode=ro", uri=True)
    except sqlite3.Error:
        raise Unavailable("the database cannot be opened") from None
    with closing(connection):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_authorizer(_authorise)
        connection.set_progress_handler(lambda: _is_over(budget), STEPS)
        try:
            cursor = connection.execute(query)
            if cursor.description is None:
                raise Invalid([(QUERY, "give one SELECT")])
            names = [column[0] for column in cursor.description]
            return write_rows(names, cursor, to, budget)
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
