"""Callers: who makes a request, and what they may see and change.

A caller with a key acts for the key's owner. What it makes belongs to that owner; others see it
only if it was shared with them. What is made without a key belongs to everybody.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, or_, select, true
from sqlalchemy.orm import InstrumentedAttribute, Session

from core.access.idempotency import IdempotentOperation, Reply
from core.database.schema import DatasetRow, JobRow, ModelRow, ShareRow
from core.exceptions import NotFound, NotOwner

EVERYBODY = ""  # as an owner
ANYBODY = "*"  # as the reader of a share
ANONYMOUS = "nobody"  # as the actor in the audit log of a service without keys


@dataclass(frozen=True)
class View:
    """What a caller sees: what belongs to `owner` or is shared with it, or everything."""

    owner: str = EVERYBODY
    sees_all: bool = True

    def of(self, kind: "Kind") -> ColumnElement[bool]:
        """The condition for rows of this kind that the caller sees."""
        if self.sees_all:
            return true()
        shared = exists().where(
            ShareRow.kind == kind.name,
            ShareRow.object == kind.identifier,
            ShareRow.reader.in_((self.owner, ANYBODY)),
        )
        return or_(kind.owner.in_((EVERYBODY, self.owner)), shared)


@dataclass(frozen=True)
class Kind:
    """A kind of thing that has an owner: its name, and the columns of identifier and owner."""

    name: str
    identifier: InstrumentedAttribute[str]
    owner: InstrumentedAttribute[str]


DATASET = Kind("dataset", DatasetRow.id, DatasetRow.owner)
JOB = Kind("job", JobRow.id, JobRow.owner)
MODEL = Kind("model", ModelRow.name, ModelRow.owner)


@dataclass(frozen=True)
class Quota:
    """What a key may take; None is no limit. Both are counted over all keys of the owner."""

    stored_bytes: int | None = None
    queued_jobs: int | None = None


@dataclass(frozen=True)
class Caller:
    """Who makes a request, and which."""

    view: View = field(default_factory=View)
    actor: str = ANONYMOUS
    key: str | None = None  # its id
    quota: Quota = field(default_factory=Quota)
    request_id: str | None = None
    operation: IdempotentOperation | None = None

    @property
    def owner(self) -> str:
        """The owner of what this caller makes."""
        return self.view.owner

    def with_reply(self, reply: Callable[[Any], Reply]) -> "Caller":
        """This caller, with another function that makes the reply of its operation."""
        if self.operation is None:
            return self
        return replace(self, operation=replace(self.operation, reply=reply))

    def with_request(
        self, request_id: str | None, operation: IdempotentOperation | None = None
    ) -> "Caller":
        """This caller, with another request."""
        return replace(self, request_id=request_id, operation=operation)

    def record(self, session: Session, resource: str, made: object = None) -> None:
        """Store id and reply in the transaction that makes `made`, if the operation has a key.

        Raises:
            AlreadyCompleted: see `core.access.idempotency`.
        """
        if self.operation is not None:
            self.operation.record(session, resource, made)


SERVICE = Caller(actor="service")
"""The service itself, such as a worker; it sees everything."""


def owner_of(session: Session, caller: Caller, kind: Kind, identifier: str) -> str:
    """The owner of a thing.

    Raises:
        NotFound: it does not exist, or the caller may not see it.
    """
    return _owner(session, caller, kind, identifier, lock=False)


def _owner(session: Session, caller: Caller, kind: Kind, identifier: str, *, lock: bool) -> str:
    query = select(kind.owner).where(and_(kind.identifier == identifier, caller.view.of(kind)))
    if lock:
        query = query.with_for_update(of=kind.owner.class_)
    owner = session.scalars(query).one_or_none()
    if owner is None:
        raise NotFound(kind.name, identifier)
    return owner


def check_change(session: Session, caller: Caller, kind: Kind, identifier: str) -> None:
    """Check that the caller may change or delete a thing; lock it until the transaction ends.

    Raises:
        NotFound: it does not exist, or the caller may not see it.
        NotOwner: it was only shared with the caller.
    """
    owner = _owner(session, caller, kind, identifier, lock=True)
    if not (caller.view.sees_all or owner in (EVERYBODY, caller.owner)):
        raise NotOwner(
            f"{kind.name} {identifier} is shared with you to be read: only its owner changes it"
        )
