"""What the keys of an owner may take: counted in the transaction that takes more.

The key's row is locked first, so that two requests at once do not both find room for one.
"""

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.callers import Caller
from core.exceptions import QuotaExceeded, TooManyRequests
from core.schema import DatasetRow, JobRow, KeyRow, PredictionRow
from core.transitions import UNFINISHED

RETRY_SECONDS = 30  # a job ends in about so long


def check_jobs(session: Session, caller: Caller, more: int) -> None:
    """Room for `more` jobs that have not ended.

    Raises:
        TooManyRequests: there will be once some have ended.
    """
    most = caller.quota.queued_jobs
    if most is None:
        return
    _lock(session, caller)
    mine = JobRow.owner == caller.owner, JobRow.status.in_(UNFINISHED), JobRow.parent.is_(None)
    found = session.scalars(select(func.count()).select_from(JobRow).where(*mine)).one()
    if found + more > most:
        raise TooManyRequests(
            f"this key may have {most} jobs that have not ended, and there are {found}: "
            "wait until one has ended, or cancel one",
            RETRY_SECONDS,
        )


def check_bytes(session: Session, caller: Caller, more: int) -> None:
    """Room for `more` bytes of data sets and stored predictions.

    Raises:
        QuotaExceeded: there is none until something is deleted.
    """
    most = caller.quota.stored_bytes
    if most is None:
        return
    _lock(session, caller)
    found = sum(
        session.scalars(select(func.coalesce(func.sum(size), 0)).where(owner == caller.owner)).one()
        for size, owner in (
            (DatasetRow.bytes, DatasetRow.owner),
            (PredictionRow.bytes, PredictionRow.owner),
        )
    )
    if found + more > most:
        raise QuotaExceeded(
            f"this key may store {most} bytes, {found} are taken, and these are {more} more: "
            "delete data sets that are no longer needed"
        )


def _lock(session: Session, caller: Caller) -> None:
    session.execute(select(KeyRow.number).where(KeyRow.id == caller.key).with_for_update())
