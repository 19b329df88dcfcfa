"""Shares: other owners may see, but not change, a data set, a job or a model."""

from collections.abc import Collection, Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from core.access import audit
from core.access.callers import ANYBODY, SERVICE, Caller, Kind, check_change, owner_of
from core.database.database import Database
from core.database.schema import ShareRow
from core.exceptions import Invalid
from core.names import name_problem

MAX_READERS = 100  # of one object


class Shares:
    """The table of readers."""

    def __init__(self, database: Database, caller: Caller = SERVICE) -> None:
        self._database = database
        self._caller = caller

    def get(self, kind: Kind, identifier: str) -> Sequence[str]:
        """The owners with whom an object is shared, sorted. Raises `NotFound`."""
        with self._database.read() as session:
            owner_of(session, self._caller, kind, identifier)
            return _readers(session, kind, identifier)

    def set(self, kind: Kind, identifier: str, readers: Collection[str]) -> Sequence[str]:
        """Share an object with exactly these owners; "*" is everybody. Returns them, sorted.

        Raises:
            Invalid: a reader's name is not valid, or there are too many.
            NotFound, NotOwner: see `core.access.callers.check_change`.
        """
        _check(readers)
        with self._database.begin() as session:
            check_change(session, self._caller, kind, identifier)
            forget(session, kind, identifier)
            session.add_all(
                ShareRow(kind=kind.name, object=identifier, reader=reader)
                for reader in set(readers)
            )
            session.flush()
            found = _readers(session, kind, identifier)
            details = {"with": list(found)}
            audit.record(session, self._caller, f"{kind.name}.share", identifier, **details)
            return found


def forget(session: Session, kind: Kind, identifier: str) -> None:
    """Delete all shares of an object."""
    shared = ShareRow.kind == kind.name, ShareRow.object == identifier
    session.execute(delete(ShareRow).where(*shared))


def _readers(session: Session, kind: Kind, identifier: str) -> Sequence[str]:
    shared = ShareRow.kind == kind.name, ShareRow.object == identifier
    return session.scalars(select(ShareRow.reader).where(*shared).order_by(ShareRow.reader)).all()


def _check(readers: Collection[str]) -> None:
    if len(readers) > MAX_READERS:
        raise Invalid([("/with", f"has {len(readers)} owners: give at most {MAX_READERS}, or *")])
    problems = {
        f"/with/{i}": problem
        for i, reader in enumerate(readers)
        if reader != ANYBODY and (problem := name_problem(reader))
    }
    if problems:
        raise Invalid(list(problems.items()))
