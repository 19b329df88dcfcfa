"""Statements that SQLite and PostgreSQL do not share, and some that several tables need."""

import secrets
from datetime import datetime
from typing import Any

from sqlalchemy import delete, inspect, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

from core.database.database import Database
from core.database.schema import InstallationRow

ROWS_AT_ONCE = 500  # deleted in one transaction, so that nobody waits long for the database


def is_sqlite(session: Session) -> bool:
    """Whether the database is a file, with one writer at a time and this machine's clock."""
    return session.get_bind().dialect.name == "sqlite"


def upsert(session: Session, table: Any) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that can say what to do ON CONFLICT."""
    return sqlite.insert(table) if is_sqlite(session) else postgresql.insert(table)


def installation_id(session: Session) -> str:
    """Twelve hexadecimal digits, the same for as long as the database lives and in its copies.

    Files in a store have it in their names where nothing else says whose they are. A process that
    is started with another database, such as an empty one by mistake, then removes none of them.
    """
    query = select(InstallationRow.id)
    found = session.scalars(query).one_or_none()
    if found is None:
        row = {"only": 1, "id": secrets.token_hex(6)}
        session.execute(upsert(session, InstallationRow).values(row).on_conflict_do_nothing())
        found = session.scalars(query).one()
    return found


def delete_before(
    database: Database, column: InstrumentedAttribute[datetime], moment: datetime
) -> None:
    """Delete the rows of the column's table in which it is before `moment`, a few at a time."""
    table: Any = column.class_
    key = tuple_(*inspect(table).primary_key)
    while True:
        with database.begin() as session:
            some = select(*inspect(table).primary_key).where(column < moment).limit(ROWS_AT_ONCE)
            keys = [tuple(row) for row in session.execute(some)]
            if not keys:
                return
            session.execute(delete(table).where(key.in_(keys)))
