"""What must be true of schedules and webhooks once a service has come to rest."""

from collections import Counter
from collections.abc import Iterator

from sqlalchemy import select

from core.database.schema import DeliveryRow, EventRow, JobRow, ScheduleRow, ScheduleRunRow
from tests.chaos.world import World

TOLD = {"succeeded", "cancelled"}


def of_schedules(world: World) -> Iterator[str]:
    """A due time has one run, which has a job or an outcome; no job is that of two runs."""
    with world.context.database.read() as session:
        runs = session.scalars(select(ScheduleRunRow)).all()
        known = set(session.scalars(select(JobRow.id)))
        (schedule,) = session.scalars(select(ScheduleRow)).all()
    for due, count in Counter(run.due_at for run in runs).items():
        if count > 1:
            yield f"schedule started {count} times for {due}"
    for job, count in Counter(run.job for run in runs if run.job).items():
        if count > 1 or job not in known:
            yield f"job {job} is that of {count} runs, and known: {job in known}"
    yield from (
        f"run {run.number} has no job and no outcome"
        for run in runs
        if not (run.job or run.outcome)
    )
    newest = max((run.number for run in runs), default=None)
    if newest is not None and schedule.next_due is None:
        yield from _forgotten(world, schedule.dataset, newest)


def _forgotten(world: World, dataset: str, newest: int) -> Iterator[str]:
    """The schedule's last run learned from the newest data set."""
    with world.context.database.read() as session:
        run = session.get_one(ScheduleRunRow, newest)
        job = session.scalars(select(JobRow).where(JobRow.id == run.job)).one_or_none()
    if job is not None and job.dataset != dataset:
        yield f"the last run learned from {job.dataset}, and the schedule has {dataset}"


def of_webhooks(world: World, after: int) -> Iterator[str]:
    """Each end of a job has a delivery; what counts as delivered has arrived, with one body."""
    with world.context.database.read() as session:
        deliveries = session.scalars(select(DeliveryRow)).all()
        newer = select(JobRow.id).where(JobRow.number > after, JobRow.parent.is_(None))
        query = select(EventRow).where(EventRow.type == "state", EventRow.job_id.in_(newer))
        states = session.scalars(query).all()
    ends = Counter(row.job_id for row in states if row.data["status"] in TOLD)
    written = Counter(row.subject for row in deliveries)
    for job, count in ends.items():
        if written[job] != count:
            yield f"job {job} ended {count} times, and has {written[job]} deliveries"
    told: dict[str, set[bytes]] = {}  # bodies by the id of the delivery
    for headers, body in zip(world.receiver.headers, world.receiver.bodies, strict=False):
        told.setdefault(headers["webhook-id"], set()).add(body)
    for row in deliveries:
        if row.status == "delivered" and row.id not in told:
            yield f"delivery {row.id} is delivered, and did not arrive"
        if row.status == "failed":
            yield f"delivery {row.id} failed: {row.log}"
    known = {row.id for row in deliveries}
    for identity, bodies in told.items():
        if identity not in known or len(bodies) > 1:
            known_or_not = "known" if identity in known else "unknown"
            yield f"delivery {identity} ({known_or_not}) arrived with {len(bodies)} bodies"
