"""The audit log: who did what, in the transaction that does it. No change without a line, and no
line without a change.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.access.callers import Caller
from core.clock import now
from core.database.database import Database
from core.database.schema import AuditRow
from core.database.statements import delete_before
from core.paging import Page, check_limit, decode_number, page_of


@dataclass(frozen=True, kw_only=True)
class Line:
    """`actor` is the name of the key that `key` is the id of, or who else it was."""

    time: datetime
    actor: str
    key: str | None
    owner: str
    request_id: str | None
    action: str
    object: str
    details: dict[str, Any]


def record(session: Session, caller: Caller, action: str, object: str, **details: Any) -> None:
    """Write a line: `action` is a kind and a verb, such as "job.create"."""
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
    """Reading it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list(
        self,
        *,
        owner: str | None = None,
        object: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Line]:
        """Newest first; of one owner, or about one thing."""
        query = select(AuditRow).order_by(AuditRow.number.desc()).limit(check_limit(limit) + 1)
        if owner is not None:
            query = query.where(AuditRow.owner == owner)
        if object is not None:
            query = query.where(AuditRow.object == object)
        if cursor is not None:
            query = query.where(AuditRow.number < decode_number("audit", cursor))
        with self._database.read() as session:
            rows = session.scalars(query).all()
        return page_of("audit", [_line(row) for row in rows], [row.number for row in rows], limit)

    def sweep(self, before: datetime) -> None:
        """Forget the lines before this time."""
        delete_before(self._database, AuditRow.time, before)


def _line(row: AuditRow) -> Line:
    return Line(
        time=row.time,
        actor=row.actor,
        key=row.key,
        owner=row.owner,
        request_id=row.request_id,
        action=row.action,
        object=row.object,
        details=row.details,
    )
