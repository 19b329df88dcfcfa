"""Statements that differ between SQLite and PostgreSQL, and some that several tables need."""

import secrets
from datetime import datetime
from typing import Any

from sqlalchemy import delete, inspect, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

from core.database.database import Database
from core.database.schema import InstallationRow

ROWS_AT_ONCE = 500  # deleted in one transaction, so that other writers do not wait long


def is_sqlite(session: Session) -> bool:
    """Whether the database is a file, with one writer at a time and this machine's clock."""
    return session.get_bind().dialect.name == "sqlite"


def upsert(session: Session, table: Any) -> postgresql.Insert | sqlite.Insert:
    """An INSERT with the ON CONFLICT clause of the session's database."""
    return sqlite.insert(table) if is_sqlite(session) else postgresql.insert(table)


def installation_id(session: Session) -> str:
    """The database's identifier: twelve hexadecimal digits. Copies of the database share it.

    Names of data sets and imported versions in a store contain it. So a process that is started by
    mistake with another database, such as an empty one, does not remove them.
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
    """Delete the rows whose `column` is before `moment`, some at a time."""
    table: Any = column.class_
    key = tuple_(*inspect(table).primary_key)
    while True:
        with database.begin() as session:
            some = select(*inspect(table).primary_key).where(column < moment).limit(ROWS_AT_ONCE)
            keys = [tuple(row) for row in session.execute(some)]
            if not keys:
                return
            session.execute(delete(table).where(key.in_(keys)))
