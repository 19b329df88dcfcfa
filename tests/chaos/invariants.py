"""What must be true of a service once it has come to rest, whatever happened to it before."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from pyarrow import parquet
from sqlalchemy import select

from core.context import Context
from core.database.schema import (
    DatasetRow,
    DeliveryRow,
    EventRow,
    JobRow,
    ScheduleRow,
    ScheduleRunRow,
    VersionRow,
)
from core.jobs.jobs import FINAL
from models.artifact.files import read_model
from tests.chaos.world import World
from worker.cleaner import Cleaner

NEXT = {  # a job's states, and those that may follow
    None: {"queued"},
    "queued": {"running", "cancelled"},
    "running": {"queued", "succeeded", "failed", "cancelling", "cancelled"},
    "cancelling": {"cancelled", "failed"},
    "failed": {"queued"},
    "cancelled": {"queued"},
    "succeeded": set(),
}
ALLOWED_CODES = {"worker_lost", "time_limit", "out_of_memory"}


def violations(context: Context) -> list[str]:
    """Everything that is wrong, in words; the store is cleaned on the way."""
    return [*of_jobs(context), *orphans(context)]


def of_jobs(context: Context, accepted: Sequence[str] = (), after: int = 0) -> list[str]:
    """What is wrong with jobs, in words; of those with a number greater than `after`."""
    newer = select(JobRow).where(JobRow.kind != "chunk", JobRow.number > after)
    with context.database.read() as session:
        jobs = session.scalars(newer).all()
    known = {job.id for job in jobs}
    found = [
        f"job {job_id} was accepted, and is gone" for job_id in accepted if job_id not in known
    ]
    for job in jobs:
        found += [f"{job.kind} {job.id}: {problem}" for problem in _of_job(context, job)]
    return found


def _of_job(context: Context, job: JobRow) -> Iterator[str]:
    if job.status not in FINAL:
        yield f"is {job.status} still"
    yield from _of_events(context.jobs.events(job.id, limit=10_000), job.status)
    if job.kind == "train":
        yield from _of_versions(context, job)
    if job.kind == "predict" and job.status == "succeeded":
        yield from _of_result(context, job)
    if job.status == "failed" and (job.error or {}).get("code") not in ALLOWED_CODES:
        yield f"failed: {job.error}"


def _of_events(events: Sequence[EventRow], status: str) -> Iterator[str]:
    if [event.id for event in events] != list(range(1, len(events) + 1)):
        yield f"has events {[event.id for event in events]}"
    states = [event.data for event in events if event.type == "state"]
    last, attempt = None, 0
    for state in states:
        if state["status"] not in NEXT[last]:
            yield f"went from {last} to {state['status']}"
        if state["status"] == "running":
            if state["attempt"] <= attempt:
                yield f"ran attempt {state['attempt']} after {attempt}"
            attempt = state["attempt"]
        last = state["status"]
    if last != status:
        yield f"is {status}, and its last event says {last}"


def _of_versions(context: Context, job: JobRow) -> Iterator[str]:
    with context.database.read() as session:
        rows = session.scalars(select(VersionRow).where(VersionRow.job == job.id)).all()
    expected = [job.version] if job.status == "succeeded" else []
    if [row.version for row in rows] != expected:
        yield f"is {job.status} with versions {[row.version for row in rows]}"
    for row in rows:
        try:
            read_model(context.store.local_path(row.artifact_key))
        except Exception as error:
            yield f"version {row.version} cannot be read: {error}"


def _of_result(context: Context, job: JobRow) -> Iterator[str]:
    rows = sum(parquet.read_metadata(path).num_rows for path in context.results.paths(job.id))
    chunks = [chunk.spec for chunk in context.jobs.parts(job.id)]
    if rows != max(chunk["stop"] for chunk in chunks):
        yield f"has a result of {rows} rows for {max(chunk['stop'] for chunk in chunks)}"


def orphans(context: Context) -> Iterator[str]:
    """After a sweep, every file is one that a row refers to. Nobody else may run meanwhile."""
    with (
        mock.patch("core.storage.staging.LEFTOVER_SECONDS", -1),
        mock.patch("worker.cleaner.ARRIVAL_SECONDS", 0),
    ):
        Cleaner(context).clean()
    with context.database.read() as session:
        kept = {*session.scalars(select(VersionRow.artifact_key))}
        kept |= {*session.scalars(select(DatasetRow.artifact_key))}
        sources = select(DatasetRow.source_key).where(DatasetRow.source_key.is_not(None))
        kept |= {*session.scalars(sources)}
        parts = select(JobRow.parent, JobRow.spec, JobRow.attempt).where(
            JobRow.kind == "chunk", JobRow.status == "succeeded"
        )
        kept |= {
            f"results/{row.parent}/{row.spec['chunk']:04d}-{row.attempt}.parquet"
            for row in session.execute(parts)
        }
        unfinished = select(JobRow.id).where(JobRow.status.in_(("failed", "cancelled")))
        kept |= {f"checkpoints/{job_id}" for job_id in session.scalars(unfinished)}
    root = context.settings.artifact_root
    for file in _files(root):
        name = file.relative_to(root).as_posix()
        if not any(name == key or name.startswith(f"{key}/") for key in kept):
            yield f"orphan: {name}"
    for key in kept:
        if not key.startswith("checkpoints") and not (root / key).exists():
            yield f"lost: {key}"
    for folder in (context.settings.data_dir / "scratch").iterdir():
        if folder.is_dir() and folder != context.scratch.path:
            yield f"orphan: {folder}"


def _files(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file())


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
