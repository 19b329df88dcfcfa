"""Requests that come twice: what was made stands in the transaction that made it, with its answer.

So there is no moment at which a crash, or the same request at the same time, makes a second one.
Source: draft-ietf-httpapi-idempotency-key-header-07; there a request that comes while the first one
runs is a conflict, here it waits for the first one's transaction.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.database.database import Database
from core.database.schema import AnswerRow
from core.database.sweeping import sweep
from core.exceptions import CredenceError, Invalid
from core.names import now

HEADER = "Idempotency-Key"


@dataclass(frozen=True)
class Answer:
    """What a caller was told."""

    status: int
    headers: Mapping[str, str]
    body: bytes


NO_ANSWER = Answer(0, {}, b"")
"""Of what is made anew from the same request, to the same bytes."""


@dataclass(frozen=True)
class Once:
    """A request that may come again: whose, where to, by which key, and with what in it.

    `fingerprint` is asked when the body has been read. `write` tells of what was made.
    """

    caller: str
    route: str
    idempotency_key: str
    fingerprint: Callable[[], str]
    write: Callable[[Any], Answer]

    def record(self, session: Session, resource: str, made: object = None) -> None:
        """Remember it in the transaction that makes `made`.

        Raises:
            Repeated: the same request has been answered meanwhile. The transaction must not commit.
        """
        session.flush()  # so that what fails below is this row
        answer = self.write(made)
        row = {
            "caller": self.caller,
            "route": self.route,
            "idempotency_key": self.idempotency_key,
            "fingerprint": self.fingerprint(),
            "resource": resource,
            "status": answer.status,
            "headers": dict(answer.headers),
            "body": answer.body,
            "created_at": now(),
        }
        try:
            session.execute(insert(AnswerRow).values(row))
        except IntegrityError:
            raise Repeated(self) from None


class Repeated(CredenceError):
    """A request came twice at once, and the other one was faster: its answer is this one's."""

    def __init__(self, once: Once) -> None:
        super().__init__(f"the request with {HEADER} {once.idempotency_key!r} was answered")


@dataclass(frozen=True)
class Remembered:
    """What a request has made before, and the answer."""

    resource: str
    fingerprint: str
    answer: Answer

    def check(self, once: Once) -> None:
        """Raise `Invalid` when the request that comes now is another one."""
        if self.fingerprint != once.fingerprint():
            message = (
                f"{once.idempotency_key!r} was sent with another request before: "
                "take a new key for a new request"
            )
            raise Invalid([(HEADER, message)])


class Answers:
    """What is remembered."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, once: Once) -> Remembered | None:
        """What the same caller made with this key on this route before."""
        with self._database.read() as session:
            return find(session, once)

    def sweep(self, before: datetime) -> None:
        """Forget what was answered before this time."""
        sweep(self._database, AnswerRow.created_at, before)


def find(session: Session, once: Once) -> Remembered | None:
    """As `Answers.find`, in the caller's transaction."""
    row = session.get(AnswerRow, (once.caller, once.route, once.idempotency_key))
    if row is None:
        return None
    answer = Answer(row.status, row.headers, row.body)
    return Remembered(row.resource, row.fingerprint, answer)
