"""The queue: jobs per second with several workers, and milliseconds per job by the queue's length.

    python -m benchmarks.queue [--workers 1 2 4] [--jobs 400]

On SQLite with the queue in a folder, as on a laptop, and on PostgreSQL with Redis, servers of its
own. Jobs are created, sent, received, claimed and ended as ever, but nothing is computed: what is
left is what a job costs beside its work. `docs/scaling.md` uses these figures.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from sqlalchemy import func, insert, select

from benchmarks import results
from core.clock import now
from core.context import Context, open_context
from core.database.schema import JobRow
from core.jobs.jobs import FINAL, Job, JobStatus, TrainSpec
from core.jobs.queue import RUN_JOB, celery_options
from core.names import new_id
from core.settings import load_settings
from models.config import ModelConfig
from models.features.columns import ColumnProfile
from models.training.recipe import resolve
from tests.core.postgresql import running_postgresql
from tests.core.redis_server import running_redis

LENGTHS = (0, 1_000, 10_000)  # of the queue, before the job that is measured
REPEATED = 20
LEASE_SECONDS = 60.0
BLOCK = 500
Installation = dict[str, str]  # settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--as-worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_worker:
        work(arguments.as_worker)
        return
    found = {}
    for name, installation in (("SQLite, folder", laptop), ("PostgreSQL, Redis", stack)):
        found[name] = {}
        for workers in arguments.workers:
            with installation() as settings:
                found[name][f"jobs/s, {workers} workers"] = rate(settings, workers, arguments.jobs)
        with installation() as settings, opened(settings) as context:
            found[name] |= by_length(context)
    results.save("queue", {"machine": results.machine(), **found})
    print(table(found))


@contextmanager
def laptop() -> Iterator[Installation]:
    with tempfile.TemporaryDirectory() as folder:
        yield {"CREDENCE_DATA_DIR": folder}


@contextmanager
def stack() -> Iterator[Installation]:
    with (
        tempfile.TemporaryDirectory() as folder,
        running_postgresql() as url,
        running_redis(Path(folder)) as redis,
    ):
        servers = {"CREDENCE_DATABASE_URL": url, "CREDENCE_BROKER_URL": redis.url}
        yield {"CREDENCE_DATA_DIR": str(Path(folder) / "data"), **servers}


@contextmanager
def opened(settings: Installation) -> Iterator[Context]:
    names = {name.removeprefix("CREDENCE_").lower(): value for name, value in settings.items()}
    context = open_context(load_settings(**names))
    try:
        yield context
    finally:
        context.close()


def rate(settings: Installation, workers: int, jobs: int) -> float:
    """Jobs per second that all workers end together; they begin at the same time."""
    line = [sys.executable, "-m", "benchmarks.queue", "--as-worker"]
    with opened(settings) as context, tempfile.TemporaryDirectory() as folder:
        for job in [context.jobs.create(specification(context)) for _ in range(jobs)]:
            context.queue.send(job.id)
        environment = os.environ | settings | {"OMP_NUM_THREADS": "1"}
        started = [subprocess.Popen([*line, folder], env=environment) for _ in range(workers)]
        try:
            wait(lambda: len(list(Path(folder).glob("ready-*"))) == workers)
            (Path(folder) / "go").touch()
            wait(lambda: unfinished(context) == 0)
        finally:
            for process in started:
                process.kill()
                process.wait()
        with context.database.read() as session:
            moments = select(func.min(JobRow.started_at), func.max(JobRow.finished_at))
            first, last = session.execute(moments).one()
        return float(jobs / (last - first).total_seconds())


def work(folder: Path) -> None:
    """A worker that claims and ends jobs and does nothing between."""
    from celery import Celery  # noqa: PLC0415 - in the workers alone

    context = open_context(load_settings())
    name = f"worker-{os.getpid()}"
    app = Celery("benchmark", set_as_current=False)
    app.conf.update(celery_options(context.settings))

    @app.task(name=RUN_JOB)
    def run_job(_: str) -> None:
        claim = context.jobs.claim_next(name, LEASE_SECONDS)
        if claim is not None:
            context.jobs.finish(claim, JobStatus.SUCCEEDED)

    (folder / f"ready-{os.getpid()}").touch()
    wait((folder / "go").exists)
    app.Worker(pool="solo", concurrency=1, quiet=True, without_gossip=True).start()


def by_length(context: Context) -> dict[str, float]:
    """Milliseconds to submit, to look at, and to claim and end a job, by the queue's length."""
    found: dict[str, float] = {}
    spec, length = specification(context), 0
    for wanted in LENGTHS:
        newest = context.jobs.create(spec)
        fill(context, newest, wanted - length)
        length = wanted
        steps = {
            "submit": partial(context.jobs.create, spec),
            "look at": partial(context.jobs.get, newest.id),
            "claim and end": partial(claim_and_end, context),
        }
        for what, step in steps.items():
            spent = [once(step) for _ in range(REPEATED)]
            found[f"ms to {what} a job, {wanted:,} wait"] = statistics.median(spent)
        claim_and_end(context)  # as many as before are left
    return found


def claim_and_end(context: Context) -> None:
    claim = context.jobs.claim_next("worker", LEASE_SECONDS)
    if claim is None:
        raise RuntimeError("no job waits")
    context.jobs.finish(claim, JobStatus.SUCCEEDED)


def fill(context: Context, template: Job, count: int) -> None:
    """Insert `count` queued jobs like this one."""
    with context.database.begin() as session:
        row = session.scalars(select(JobRow).where(JobRow.id == template.id)).one()
        names = [column.key for column in JobRow.__table__.columns if column.key != "number"]
        values = {name: getattr(row, name) for name in names} | {"queued_at": now()}
        for start in range(0, count, BLOCK):
            size = min(BLOCK, count - start)
            rows = [values | {"id": new_id("job")} for _ in range(size)]
            session.execute(insert(JobRow), rows)


def specification(context: Context) -> TrainSpec:
    """A training of a small table, which is never run."""
    columns = {name: [0.0, 0.5, 1.0] * 20 for name in ("x", "y")}
    dataset, _ = context.datasets.add_columns("line", columns)
    profiles = [ColumnProfile(name=name, type="number", min=0, max=1) for name in columns]
    config = resolve(ModelConfig(target="y", task="regression"), profiles, 60)
    return TrainSpec(model="line", dataset=dataset.id, config=config)


def unfinished(context: Context) -> int:
    query = select(func.count()).where(JobRow.status.not_in(FINAL))
    with context.database.read() as session:
        return session.scalars(query).one()


def wait(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def once(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def table(found: dict[str, dict[str, float]]) -> str:
    rows = next(iter(found.values()))
    lines = [[what, *(results.figure(of[what], 2) for of in found.values())] for what in rows]
    return results.markdown(["", *found], lines)


if __name__ == "__main__":
    main()
