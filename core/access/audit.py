"""The audit log: who did what. A change and its line are written in the same transaction."""

from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.access.callers import Caller
from core.clock import now
from core.database.database import Database
from core.database.schema import AuditRow
from core.database.statements import delete_before
from core.paging import Page, read_newest


def record(session: Session, caller: Caller, action: str, object: str, **details: Any) -> None:
    """Write a line.

    Args:
        action: kind of object and verb, such as "job.create".
        object: the object's identifier.
    """
    session.add(
        AuditRow(
            time=now(),
            actor=caller.actor,
            key=caller.key,
            owner=caller.owner,
            request_id=caller.request_id,
            action=action,
            object=object,
            details=details,
        )
    )


class Audit:
    """The log: to read it, and to delete old lines."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(
        self,
        *,
        owner: str | None = None,
        object: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[AuditRow]:
        """The lines, newest first; if given, only those with this owner and this object."""
        query = select(AuditRow)
        if owner is not None:
            query = query.where(AuditRow.owner == owner)
        if object is not None:
            query = query.where(AuditRow.object == object)
        with self._database.read() as session:
            return read_newest(session, "audit", query, AuditRow.number, limit, cursor)

    def sweep(self, before: datetime) -> None:
        """Delete the lines before this time."""
        delete_before(self._database, AuditRow.time, before)
