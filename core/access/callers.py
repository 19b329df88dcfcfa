"""Callers: what the sender of a request may see and change.

A caller with a key acts for the key's owner. Data sets, jobs and models that it creates belong to
that owner; others see them only if they were shared. Those created without a key belong to
everybody.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, or_, select, true
from sqlalchemy.orm import InstrumentedAttribute, Session

from core.access.idempotency import IdempotentOperation, Reply
from core.database.schema import DatasetRow, JobRow, ModelRow, ShareRow
from core.exceptions import NotFound, NotOwner
from core.paging import Hold, hold_nothing

EVERYBODY = ""  # as an owner
ANYBODY = "*"  # as the reader of a share
ANONYMOUS = "nobody"  # as the actor in the audit log of a service without keys


@dataclass(frozen=True)
class View:
    """The rows that a caller sees: those of `owner`, of everybody and shared ones, or all."""

    owner: str = EVERYBODY
    sees_all: bool = True

    def of(self, kind: "Kind") -> ColumnElement[bool]:
        """The SQL condition for rows of this kind that the caller sees."""
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
    """A kind of object that has an owner, with its columns of identifier and owner."""

    name: str
    identifier: InstrumentedAttribute[str]
    owner: InstrumentedAttribute[str]


DATASET = Kind("dataset", DatasetRow.id, DatasetRow.owner)
JOB = Kind("job", JobRow.id, JobRow.owner)
MODEL = Kind("model", ModelRow.name, ModelRow.owner)


@dataclass(frozen=True)
class Quota:
    """The quotas of a key; None is no limit. All keys of the owner are counted together."""

    stored_bytes: int | None = None
    queued_jobs: int | None = None


@dataclass(frozen=True)
class Caller:
    """The sender of a request, and the request."""

    view: View = field(default_factory=View)
    actor: str = ANONYMOUS
    key: str | None = None  # its id
    quota: Quota = field(default_factory=Quota)
    request_id: str | None = None
    operation: IdempotentOperation | None = None
    address: str | None = None  # of the client
    hold: Hold = field(default=hold_nothing, compare=False)
    """Holds memory for so many bytes of JSON before they are read; see `app.http.held_memory`."""

    @property
    def owner(self) -> str:
        """The owner of what this caller creates."""
        return self.view.owner

    @property
    def share(self) -> str:
        """Whose share of the process its requests use: the owner's, the key's or the address's."""
        return self.view.owner or self.key or self.address or ""

    def with_reply(self, reply: Callable[[Any], Reply]) -> "Caller":
        """This caller, with another `reply` function of its operation."""
        if self.operation is None:
            return self
        return replace(self, operation=replace(self.operation, reply=reply))

    def with_request(
        self,
        request_id: str | None,
        operation: IdempotentOperation | None = None,
        address: str | None = None,
        hold: Hold = hold_nothing,
    ) -> "Caller":
        """This caller, with another request. Every request calls this; `replace` takes longer."""
        return Caller(
            self.view, self.actor, self.key, self.quota, request_id, operation, address, hold
        )

    def record(self, session: Session, resource: str, made: object = None) -> None:
        """Store id and reply in the transaction that makes `made`, if the operation has a key.

        Raises:
            AlreadyCompleted: see `core.access.idempotency`.
        """
        if self.operation is not None:
            self.operation.record(session, resource, made)


SERVICE = Caller(actor="service")
"""The service itself, such as a worker. It sees everything."""


def owner_of(
    session: Session, caller: Caller, kind: Kind, identifier: str, *, lock: bool = False
) -> str:
    """The owner of an object.

    Args:
        lock: whether to lock the object until the transaction ends.

    Raises:
        NotFound: it does not exist, or the caller may not see it.
    """
    query = select(kind.owner).where(and_(kind.identifier == identifier, caller.view.of(kind)))
    if lock:
        query = query.with_for_update(of=kind.owner.class_)
    owner = session.scalars(query).one_or_none()
    if owner is None:
        raise NotFound(kind.name, identifier)
    return owner


def check_change(session: Session, caller: Caller, kind: Kind, identifier: str) -> None:
    """Check that the caller may change an object; lock it until the transaction ends.

    Raises:
        NotFound: it does not exist, or the caller may not see it.
        NotOwner: it was only shared with the caller.
    """
    owner = owner_of(session, caller, kind, identifier, lock=True)
    if not (caller.view.sees_all or owner in (EVERYBODY, caller.owner)):
        raise NotOwner(
            f"{kind.name} {identifier} is shared with you to be read: only its owner changes it"
        )
