"""Rows whose time is up go a few at a time: nobody waits long for the database meanwhile."""

from datetime import datetime
from typing import Any

from sqlalchemy import delete, inspect, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute

from core.database.database import Database

PIECE = 500  # rows in one transaction


def sweep(database: Database, column: InstrumentedAttribute[datetime], before: datetime) -> None:
    """Delete the rows of the column's table that are older than `before`."""
    table: Any = column.class_
    key = tuple_(*inspect(table).primary_key)
    while True:
        with database.begin() as session:
            some = select(*inspect(table).primary_key).where(column < before).limit(PIECE)
            keys = [tuple(row) for row in session.execute(some)]
            if not keys:
                return
            session.execute(delete(table).where(key.in_(keys)))
