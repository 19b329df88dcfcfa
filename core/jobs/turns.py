"""The order in which workers claim queued jobs: the owners take turns.

The next job is the oldest of the owner of whom the fewest jobs run; among several such owners, of
the one whose last job started first. So an owner alone gets all workers, and several owners get
about the same number each, whatever they have queued and however long their jobs take. Jobs without
an owner share one turn.

The place of every waiting job follows from the same rule: the k-th job of an owner with r running
ones comes when this owner has r + k - 1 of them. It is an estimate if jobs end meanwhile.
"""

from collections.abc import Sequence

from sqlalchemy import Select, Subquery, func, select
from sqlalchemy.orm import Session

from core.database.schema import JobRow
from core.jobs.parts import PARENT_KINDS
from core.jobs.transitions import CLAIMED, JobStatus

AGE = JobRow.queued_at, JobRow.number
CLAIMABLE = JobRow.status == JobStatus.QUEUED, JobRow.kind.not_in(PARENT_KINDS)


def next_ids(session: Session, job_id: str | None = None) -> Sequence[str]:
    """Ids of jobs that workers may claim, next first; if given, only the job and its parts."""
    turns = _turns()
    query = _in_order(select(turns.c.id), turns)
    if job_id is not None:
        query = query.where(turns.c.job == job_id)
    return session.scalars(query).all()


def next_id(session: Session) -> str | None:
    """The id of the job that is claimed next; None if none waits.

    The first of `next_ids`, without the order of all others: each claim asks for it.
    """
    owner = session.scalars(_next_owner()).one_or_none()
    if owner is None:
        return None
    oldest = select(JobRow.id).where(*CLAIMABLE, JobRow.owner == owner)
    return session.scalars(oldest.order_by(*AGE).limit(1)).one_or_none()


def positions(session: Session) -> dict[str, int]:
    """The places of the queued jobs by id, from 1; parts count as the job that they are of."""
    turns = _turns()
    query = select(turns.c.job).join(JobRow, JobRow.id == turns.c.job)
    jobs = session.scalars(_in_order(query.where(JobRow.status == JobStatus.QUEUED), turns))
    return {job: place for place, job in enumerate(dict.fromkeys(jobs), start=1)}


def _next_owner() -> Select[str]:
    """The owner whose turn it is. The first job of each owner decides: it has the least round."""
    first, number = func.min(JobRow.queued_at), func.min(JobRow.number)
    query = select(JobRow.owner, first.label("first"), number.label("number")).where(*CLAIMABLE)
    waiting, running, started = query.group_by(JobRow.owner).subquery(), _running(), _started()
    return (
        select(waiting.c.owner)
        .outerjoin(running, running.c.owner == waiting.c.owner)
        .outerjoin(started, started.c.owner == waiting.c.owner)
        .order_by(
            func.coalesce(running.c.number, 0),
            started.c.last.nulls_first(),
            waiting.c.first,
            waiting.c.number,
        )
        .limit(1)
    )


def _turns() -> Subquery:
    """The claimable jobs with all that their order depends on."""
    running, started = _running(), _started()
    place = func.row_number().over(partition_by=JobRow.owner, order_by=AGE)
    return (
        select(
            JobRow.id,
            JobRow.number,
            func.coalesce(JobRow.parent, JobRow.id).label("job"),
            place.label("place"),
            (place + func.coalesce(running.c.number, 0)).label("round"),
            started.c.last.label("last"),
            func.min(JobRow.queued_at).over(partition_by=JobRow.owner).label("first"),
        )
        .outerjoin(running, running.c.owner == JobRow.owner)
        .outerjoin(started, started.c.owner == JobRow.owner)
        .where(*CLAIMABLE)
        .subquery()
    )


def _in_order(query: Select[str], turns: Subquery) -> Select[str]:
    """Within a round, whoever got a job in the round before comes after all others."""
    c = turns.c
    return query.order_by(c.round, c.place, c.last.nulls_first(), c.first, c.number)


def _running() -> Subquery:
    claimed = JobRow.status.in_(CLAIMED), JobRow.kind.not_in(PARENT_KINDS)
    query = select(JobRow.owner, func.count().label("number")).where(*claimed)
    return query.group_by(JobRow.owner).subquery()


def _started() -> Subquery:
    """When the last job of each owner who waits started."""
    waiting = select(JobRow.owner).where(*CLAIMABLE)
    query = select(JobRow.owner, func.max(JobRow.started_at).label("last"))
    return query.where(JobRow.owner.in_(waiting)).group_by(JobRow.owner).subquery()
