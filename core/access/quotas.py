"""Quotas of owners, checked in the transaction that adds to what they use.

The owner is locked first: otherwise two transactions could both use the last free place.
"""

from sqlalchemy import BigInteger, ColumnElement, func, select
from sqlalchemy.orm import Session

from core.access.callers import EVERYBODY, Caller
from core.database.schema import (
    DatasetRow,
    JobRow,
    KeyRow,
    ModelRow,
    PredictionRow,
    VersionRow,
)
from core.database.statements import is_sqlite
from core.exceptions import LimitReached, QuotaExceeded
from core.jobs.transitions import UNFINISHED

LOCK = 0x71756F74  # "quot"; no other advisory lock has this number
RETRY_SECONDS = 30  # about the duration of a short job

# NULL for a trained version: its data set is counted instead
_IMPORTED_BYTES = VersionRow.description["imported", "bytes"].as_string().cast(BigInteger)


def check_jobs(session: Session, caller: Caller, more: int) -> None:
    """Check that the caller may have `more` unfinished jobs.

    Raises:
        LimitReached: it would have more than its quota.
    """
    most = caller.quota.queued_jobs
    if most is None:
        return
    lock_owner(session, caller)
    mine = JobRow.owner == caller.owner, JobRow.status.in_(UNFINISHED), JobRow.parent.is_(None)
    found = session.scalars(select(func.count()).select_from(JobRow).where(*mine)).one()
    if found + more > most:
        raise LimitReached(
            f"this key may have {most} jobs that have not ended, and there are {found}: "
            "wait until one has ended, or cancel one",
            RETRY_SECONDS,
        )


def check_bytes(session: Session, caller: Caller, more: int, free: int | None = None) -> None:
    """Check that the caller may store `more` bytes.

    Data sets, imported versions and stored predictions count. Where there are other owners, one may
    store as much as stays free (`core.process.shared_bound`): a half of the disk, a third each of
    two. Whoever is alone may fill it.

    Args:
        free: bytes of the disk that are free beside those that are stored already; None for no end.

    Raises:
        QuotaExceeded: it would store more than its quota, or than its share of the disk.
    """
    most = caller.quota.stored_bytes
    shares = free is not None and caller.owner != EVERYBODY and _has_others(session, caller.owner)
    if most is None and not shares:
        return
    lock_owner(session, caller)
    found = sum(
        session.scalars(select(func.coalesce(func.sum(size), 0)).where(whose)).one()
        for size, whose in _stored(caller)
    )
    advice = "delete data sets or imported versions that are no longer needed"
    if most is not None and found + more > most:
        raise QuotaExceeded(
            f"this key may store {most} bytes; {found} are in use, and {more} more are needed: "
            f"{advice}"
        )
    if free is not None and shares and found + more > free:
        raise QuotaExceeded(
            f"the disk, which owners share, has {free} bytes free; you would store {found + more}, "
            f"and may store as much as stays free for others: {advice}"
        )


def _has_others(session: Session, owner: str) -> bool:
    """Whether there are keys or data sets of another owner."""
    others = KeyRow.owner.not_in((owner, EVERYBODY)), KeyRow.revoked_at.is_(None)
    if session.scalars(select(KeyRow.number).where(*others).limit(1)).first() is not None:
        return True
    theirs = DatasetRow.owner.not_in((owner, EVERYBODY))
    return session.scalars(select(DatasetRow.id).where(theirs).limit(1)).first() is not None


def _stored(caller: Caller) -> list[tuple[ColumnElement[int], ColumnElement[bool]]]:
    """The columns to sum, with their conditions. A key without an owner counts its own rows."""
    predictions = PredictionRow.owner == caller.owner
    if caller.owner == EVERYBODY:
        predictions &= PredictionRow.key == caller.key
        return [(PredictionRow.bytes.expression, predictions)]
    mine = select(ModelRow.name).where(ModelRow.owner == caller.owner)
    return [
        (DatasetRow.stored_bytes.expression, DatasetRow.owner == caller.owner),
        (_IMPORTED_BYTES, VersionRow.model.in_(mine)),
        (PredictionRow.bytes.expression, predictions),
    ]


def lock_owner(session: Session, caller: Caller) -> None:
    """Lock the caller's owner until the transaction ends; SQLite has only one writer anyway."""
    if not is_sqlite(session):
        lock = func.pg_advisory_xact_lock(LOCK, func.hashtext(caller.owner or caller.key))
        session.execute(select(lock))
