"""Runs are started once, by whichever worker comes first, and missed ones are caught up once."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from core.access.audit import Audit
from core.access.callers import Caller, View
from core.access.keys import Keys, Limits, Scope
from core.database.database import Database
from core.database.schema import JobRow, ScheduleRunRow
from core.datasets.datasets import Datasets
from core.exceptions import Conflict
from core.jobs.jobs import Jobs, JobStatus
from core.jobs.specs import TrainSpec
from core.schedules.schedules import Schedules, When
from core.schedules.starts import Starts
from tests.core.schedules.conftest import NOON, Clock, scheduled_spec

HOURLY = When("0 * * * *")


@pytest.fixture
def hourly(schedules: Schedules, scheduled: TrainSpec) -> Schedules:
    schedules.create("nightly", scheduled, HOURLY, {"model": "square"})
    return schedules


def end(jobs: Jobs, job: str | None) -> None:
    assert job is not None
    claim = jobs.claim(job, "worker", 60)
    assert claim is not None
    jobs.finish(claim, JobStatus.FAILED, error={"code": "x", "message": "x"})


def count(database: Database, table: type) -> int:
    with database.read() as session:
        return session.scalars(select(func.count()).select_from(table)).one()


def test_nothing_runs_before_it_is_due(hourly: Schedules, starts: Starts, clock: Clock) -> None:
    assert hourly.get("nightly").next_due == NOON + timedelta(hours=1)
    clock.move(minutes=59, seconds=59)
    assert starts.start_due() == []
    clock.move(seconds=1)
    [job] = starts.start_due()
    schedule = hourly.get("nightly")
    assert schedule.next_due == NOON + timedelta(hours=2)
    [run] = schedule.runs
    assert (run.job, run.status, run.reason, run.missed) == (job, "queued", "cron", 0)
    assert run.due_at == NOON + timedelta(hours=1)


def test_the_job_is_the_owners_training(
    hourly: Schedules, starts: Starts, clock: Clock, jobs: Jobs, database: Database
) -> None:
    clock.move(hours=1)
    [job_id] = starts.start_due()
    assert job_id is not None
    job = jobs.get(job_id)
    assert (job.kind, job.model, job.owner) == ("train", "square", "")
    spec = TrainSpec.model_validate(job.spec)
    assert spec.scheduled is not None
    assert (spec.scheduled.reason, spec.scheduled.refreshes) == ("cron", False), "it was uploaded"
    [line] = Audit(database).list(object=job_id).data
    assert (line.action, line.actor) == ("job.create", "schedule nightly")


def test_missed_runs_are_caught_up_once(
    hourly: Schedules, starts: Starts, clock: Clock, jobs: Jobs
) -> None:
    clock.move(days=3, minutes=1)
    [job] = starts.start_due()
    assert starts.start_due() == []
    schedule = hourly.get("nightly")
    assert schedule.next_due == NOON + timedelta(days=3, hours=1)
    [run] = schedule.runs
    assert (run.due_at, run.missed) == (NOON + timedelta(hours=1), 71)
    end(jobs, job)
    assert starts.start_due() == []


def test_a_run_that_has_not_ended_delays_the_next(
    hourly: Schedules, starts: Starts, clock: Clock, jobs: Jobs
) -> None:
    clock.move(hours=1)
    [first] = starts.start_due()
    clock.move(hours=5)
    assert starts.start_due() == []
    with pytest.raises(Conflict, match="a run of schedule 'nightly' has not ended"):
        hourly.run("nightly")
    end(jobs, first)
    [second] = starts.start_due()
    newest, oldest = hourly.get("nightly").runs
    assert (newest.job, newest.missed, oldest.status) == (second, 4, "failed")


def test_workers_that_race_start_a_run_once(
    hourly: Schedules, database: Database, clock: Clock
) -> None:
    clock.move(hours=1)
    barrier, started = threading.Barrier(4), list[str | None]()

    def race() -> None:
        own = Starts(database, clock)
        barrier.wait()
        started.extend(own.start_due())

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 1
    assert count(database, JobRow) == count(database, ScheduleRunRow) == 1


def test_a_caller_runs_it_at_once(hourly: Schedules, clock: Clock, database: Database) -> None:
    run = hourly.run("nightly")
    assert (run.reason, run.due_at, run.status) == ("manual", NOON, "queued")
    assert hourly.get("nightly").next_due == NOON + timedelta(hours=1)
    assert [line.action for line in Audit(database).list(object="nightly").data] == [
        "schedule.run",
        "schedule.create",
    ]


def test_without_its_data_set_a_run_fails_and_the_next_is_tried(
    hourly: Schedules, starts: Starts, clock: Clock, datasets: Datasets, dataset_id: str
) -> None:
    datasets.delete(dataset_id)
    clock.move(hours=1)
    assert starts.start_due() == [None]
    schedule = hourly.get("nightly")
    [run] = schedule.runs
    assert (run.status, run.job) == ("failed", None)
    assert run.outcome is not None
    assert run.outcome["reason"] == f"there is no dataset '{dataset_id}'"
    assert schedule.next_due == NOON + timedelta(hours=2)
    with pytest.raises(Conflict, match="schedule 'nightly' cannot run: there is no dataset"):
        hourly.run("nightly")


def test_a_run_waits_for_the_quota_of_its_key(
    database: Database, datasets: Datasets, clock: Clock, starts: Starts
) -> None:
    key, _ = Keys(database).create("anna", Scope.TRAIN, limits=Limits(queued_jobs=1))
    annas = Datasets(database, datasets._store, caller=key.caller)
    dataset, _ = annas.add_columns("hers", {"x": [1.0, 2.0], "y": [1.0, 4.0]})
    schedules = Schedules(database, key.caller, clock)
    for name in ("one", "two"):
        schedules.create(name, scheduled_spec(dataset.id, name), HOURLY, {})
    clock.move(hours=1)
    [first] = starts.start_due()
    assert Jobs(database, key.caller).get(str(first)).owner == "anna"
    assert starts.start_due() == []
    assert sum(not schedules.get(name).runs for name in ("one", "two")) == 1
    end(Jobs(database), first)
    assert len(starts.start_due()) == 1


def test_without_a_key_its_owner_runs_nothing(
    database: Database, datasets: Datasets, clock: Clock, starts: Starts
) -> None:
    key, _ = Keys(database).create("anna", Scope.TRAIN)
    annas = Datasets(database, datasets._store, caller=key.caller)
    dataset, _ = annas.add_columns("hers", {"x": [1.0, 2.0], "y": [1.0, 4.0]})
    schedules = Schedules(database, key.caller, clock)
    schedules.create("nightly", scheduled_spec(dataset.id), HOURLY, {})
    Keys(database).revoke(key.id)
    clock.move(hours=1)
    assert starts.start_due() == [None]
    [run] = schedules.get("nightly").runs
    assert run.outcome is not None
    assert run.outcome["reason"] == "'anna' has no key that is not revoked"


def test_a_deleted_schedule_leaves_its_job(
    hourly: Schedules, starts: Starts, clock: Clock, jobs: Jobs, database: Database
) -> None:
    clock.move(hours=1)
    [job] = starts.start_due()
    hourly.delete("nightly")
    assert jobs.get(str(job)).status == JobStatus.QUEUED
    assert count(database, ScheduleRunRow) == 0


def test_names_are_given_once_and_seen_by_their_owner(
    hourly: Schedules, scheduled: TrainSpec, database: Database
) -> None:
    with pytest.raises(Conflict, match="there is a schedule 'nightly': take another name"):
        hourly.create("nightly", scheduled, HOURLY, {})
    ben = Schedules(database, Caller(View("ben", sees_all=False), "ben"))
    assert [one.name for one in ben.list().data] == ["nightly"], "it is everybody's"
