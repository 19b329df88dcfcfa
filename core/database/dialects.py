"""The few statements that SQLite and PostgreSQL do not share."""

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session


def is_sqlite(session: Session) -> bool:
    """Whether the database is a file, with one writer at a time and this machine's clock."""
    return session.get_bind().dialect.name == "sqlite"


def upsert(session: Session, table: Any) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that can say what to do ON CONFLICT: both know how, each in a class of its own."""
    return sqlite.insert(table) if is_sqlite(session) else postgresql.insert(table)
