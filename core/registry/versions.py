"""Statements on versions and aliases, inside the caller's transaction."""

from collections.abc import Collection

from sqlalchemy import ScalarSelect, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from core.access.callers import EVERYBODY, Caller
from core.database.schema import AliasRow, JobRow, Json, ModelRow, VersionRow
from core.database.statements import upsert
from core.exceptions import NotFound, NotOwner
from core.webhooks.event_types import EventType
from core.webhooks.outbox import tell

TRAINS = frozenset({"train", "compare"})
"""The kinds of job that create versions of their model."""
MAX_DIGITS = 9  # of a version; the column has 31 bits


def reserve(session: Session, model: str, caller: Caller, owner: str) -> None:
    """Check that the caller may create versions of a model. The first to do so becomes its owner.

    A name without versions and without unfinished trainings is free.

    Raises:
        NotOwner: the model is another owner's.
    """
    values = {"name": model, "owner": owner, "last_version": 0}
    session.execute(upsert(session, ModelRow).values(values).on_conflict_do_nothing())
    row = session.scalars(select(ModelRow).where(ModelRow.name == model).with_for_update()).one()
    if not _is_used(session, model):
        row.owner = owner
    if not (caller.view.sees_all or row.owner in (EVERYBODY, caller.owner)):
        raise NotOwner(f"the model {model!r} is another owner's: take another name")


def _is_used(session: Session, model: str) -> bool:
    versions = exists().where(VersionRow.model == model)
    unfinished = JobRow.finished_at.is_(None), JobRow.kind.in_(TRAINS)
    jobs = exists().where(JobRow.model == model, *unfinished)
    return bool(session.scalars(select(or_(versions, jobs))).one())


def insert(session: Session, row: VersionRow, alias: str | None) -> None:
    """Give the row the model's next number, insert it, and set the alias."""
    row.version = _next_number(session, row.model)
    session.add(row)
    session.flush()
    if alias is not None:
        set_alias(session, row, alias)


def find(session: Session, model: str, version: int | str | None) -> VersionRow:
    """The version with a number or alias, or the newest for None. Raises `NotFound`."""
    query = select(VersionRow).where(VersionRow.model == model)
    row = session.scalars(query.order_by(VersionRow.version.desc()).limit(1)).one_or_none()
    if row is None:
        raise NotFound("model", model)
    if version is None:
        return row
    number = _to_number(session, model, version)
    row = None if number is None else session.get(VersionRow, (model, number))
    if row is None:
        raise NotFound("version", f"{model}/{str(version)[:64]}")
    return row


def aliases(session: Session, row: VersionRow) -> tuple[str, ...]:
    """The aliases of a version, sorted."""
    query = select(AliasRow.alias).where(
        AliasRow.model == row.model, AliasRow.version == row.version
    )
    return tuple(session.scalars(query.order_by(AliasRow.alias)))


def aliases_of(session: Session, models: Collection[str]) -> dict[tuple[str, int], tuple[str, ...]]:
    """The sorted aliases of models, by model and version."""
    query = select(AliasRow).where(AliasRow.model.in_(models)).order_by(AliasRow.alias)
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for row in session.scalars(query):
        found[row.model, row.version] = (*found.get((row.model, row.version), ()), row.alias)
    return found


def newest() -> ScalarSelect[int]:
    """The newest version of the model in the `ModelRow` of a query: one look at the key's index."""
    others = aliased(VersionRow)
    query = select(func.max(others.version)).where(others.model == ModelRow.name)
    return query.correlate(ModelRow).scalar_subquery()


def set_alias(session: Session, row: VersionRow, alias: str) -> None:
    """Create or move an alias. The model's row must be locked."""
    before = session.get(AliasRow, (row.model, alias))
    previous = None if before is None else before.version
    session.merge(AliasRow(model=row.model, alias=alias, version=row.version))
    session.flush()
    if previous != row.version:
        about = {"version": row.version, "previous_version": previous}
        _tell(session, EventType.ALIAS_MOVED, row.model, alias, about)


def remove_alias(session: Session, row: AliasRow) -> None:
    """Delete an alias. The model's row must be locked."""
    session.delete(row)
    _tell(session, EventType.ALIAS_REMOVED, row.model, row.alias, {"version": row.version})


def _tell(session: Session, event: EventType, model: str, alias: str, about: Json) -> None:
    """Tell the webhooks of a model's owner what happened to an alias."""
    owner = session.scalars(select(ModelRow.owner).where(ModelRow.name == model)).one()
    tell(session, owner, event, f"{model}/{alias}", {"model": model, "alias": alias, **about})


def lock_version(
    session: Session, model: str, number: int, *, exclusive: bool = False
) -> VersionRow:
    """Lock a version against deletion until the transaction ends.

    Args:
        exclusive: whether to keep other transactions from locking it at the same time.

    Raises:
        NotFound: it was deleted.
    """
    query = select(VersionRow).where(VersionRow.model == model, VersionRow.version == number)
    row = session.scalars(query.with_for_update(read=not exclusive, key_share=True)).one_or_none()
    if row is None:
        raise NotFound("version", f"{model}/{number}")
    return row


def _next_number(session: Session, model: str) -> int:
    """The next version number, from 1. The model's row stays locked until the transaction ends."""
    counted = (
        upsert(session, ModelRow)
        .values(name=model, last_version=1)
        .on_conflict_do_update(
            index_elements=[ModelRow.name], set_={"last_version": ModelRow.last_version + 1}
        )
    )
    return session.scalars(counted.returning(ModelRow.last_version)).one()


def _to_number(session: Session, model: str, version: int | str) -> int | None:
    text = str(version)
    if text.isascii() and text.isdecimal():
        return int(text) if len(text) <= MAX_DIGITS else None
    query = select(AliasRow.version).where(AliasRow.model == model, AliasRow.alias == text)
    return session.scalars(query).one_or_none() if text.isprintable() else None
