"""Operations with an idempotency key: result and reply are stored in one transaction.

So neither a crash nor a repetition at the same time can create a second result.
Source: draft-ietf-httpapi-idempotency-key-header-07. There a repetition that arrives while the
first operation runs is a conflict; here it waits for the first transaction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.clock import now
from core.database.database import Database
from core.database.schema import ReplyRow
from core.database.statements import delete_before
from core.exceptions import CredenceError


class AlreadyCompleted(CredenceError):
    """The same operation ran at the same time and committed first: use its reply."""


class KeyReused(CredenceError):
    """An idempotency key that belongs to another operation of the same caller."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"{key!r} was sent with another request before: take a new key for a new request"
        )


@dataclass(frozen=True)
class Reply:
    """An HTTP response, as the caller receives it. `core` only stores it."""

    status: int
    headers: Mapping[str, str]
    body: bytes


NO_REPLY = Reply(0, {}, b"")
"""For operations whose reply can be computed again, byte for byte, from the request."""


@dataclass(frozen=True)
class IdempotentOperation:
    """An operation that its caller may repeat.

    Args:
        caller: the id of the caller's key, or its name.
        route: method and path, such as "POST /train".
        key: chosen by the caller; unique per caller and route.
        fingerprint: returns a hash of the request's content. Call it when that is read completely.
        reply: returns the reply for a result.
    """

    caller: str
    route: str
    key: str
    fingerprint: Callable[[], str]
    reply: Callable[[Any], Reply]

    def record(self, session: Session, resource: str, made: object = None) -> None:
        """Store id and reply in the transaction that makes `made`.

        Raises:
            AlreadyCompleted: the same operation has committed meanwhile; roll back.
        """
        session.flush()  # so that only the statement below can violate a constraint
        reply = self.reply(made)
        row = {
            "caller": self.caller,
            "route": self.route,
            "idempotency_key": self.key,
            "fingerprint": self.fingerprint(),
            "resource": resource,
            "status": reply.status,
            "headers": dict(reply.headers),
            "body": reply.body,
            "created_at": now(),
        }
        try:
            session.execute(insert(ReplyRow).values(row))
        except IntegrityError:
            raise AlreadyCompleted(f"the operation with the key {self.key!r} is complete") from None


@dataclass(frozen=True)
class Completed:
    """A recorded operation: its result's id, its fingerprint, and its reply."""

    resource: str
    fingerprint: str
    reply: Reply

    def check(self, operation: IdempotentOperation) -> None:
        """Raise `KeyReused` if `operation` has another fingerprint."""
        if self.fingerprint != operation.fingerprint():
            raise KeyReused(operation.key)


class Replies:
    """The table of recorded operations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, operation: IdempotentOperation) -> Completed | None:
        """The recorded operation with this caller, route and key, or None."""
        with self._database.read() as session:
            row = session.get(ReplyRow, (operation.caller, operation.route, operation.key))
        if row is None:
            return None
        reply = Reply(row.status, row.headers, row.body)
        return Completed(row.resource, row.fingerprint, reply)

    def sweep(self, before: datetime) -> None:
        """Delete operations recorded before this time."""
        delete_before(self._database, ReplyRow.created_at, before)
