"""Runs are started once, by whichever worker comes first, and missed ones are caught up once."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.orm import Session

from core.access.audit import Audit
from core.access.keys import Keys, Limits, Scope
from core.database.database import Database
from core.datasets.datasets import Datasets
from core.exceptions import Conflict
from core.jobs.jobs import Jobs, JobStatus
from core.jobs.specs import Scheduled, TrainSpec
from core.schedules.cron import next_due
from core.schedules.schedules import Schedules, When
from core.schedules.starts import Starts
from models.config import ModelConfig
from models.evaluation.gate import GateConfig
from tests.core.conftest import at_once

NOON = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self, session: Session) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def schedules(database: Database, clock: Clock) -> Schedules:
    return Schedules(database, clock=clock)


@pytest.fixture
def starts(database: Database, clock: Clock) -> Starts:
    return Starts(database, clock)


def scheduled_spec(dataset: str, name: str = "nightly") -> TrainSpec:
    config = ModelConfig(target="y")
    return TrainSpec(
        model="square",
        dataset=dataset,
        config=config,
        alias="champion",
        scheduled=Scheduled(schedule=name, gate=GateConfig(), configs=(config,)),
    )


@pytest.fixture
def scheduled(dataset_id: str) -> TrainSpec:
    return scheduled_spec(dataset_id)


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


def test_nothing_runs_before_it_is_due(
    hourly: Schedules, starts: Starts, clock: Clock, jobs: Jobs, database: Database
) -> None:
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
    training = jobs.get(str(job))
    assert (training.kind, training.model, training.owner) == ("train", "square", "")
    [line] = Audit(database).list(object=job).data
    assert (line.action, line.actor) == ("job.create", "schedule nightly")


def test_missed_runs_run_once(hourly: Schedules, starts: Starts, clock: Clock, jobs: Jobs) -> None:
    clock.move(days=3, minutes=1)
    [job] = starts.start_due()
    assert starts.start_due() == []
    schedule = hourly.get("nightly")
    assert schedule.next_due == NOON + timedelta(days=3, hours=1)
    [run] = schedule.runs
    assert (run.due_at, run.missed) == (NOON + timedelta(hours=1), 71)
    end(jobs, job)
    assert starts.start_due() == []


def test_workers_that_race_start_a_run_once(
    hourly: Schedules, database: Database, clock: Clock, jobs: Jobs
) -> None:
    clock.move(hours=1)
    started = at_once(lambda _: Starts(database, clock).start_due(), 4)
    [job] = [job for jobs in started for job in jobs]
    assert [job.id for job in jobs.list().data] == [job]
    assert [run.job for run in hourly.get("nightly").runs] == [job]


def test_without_its_data_set_a_run_fails_and_the_next_is_tried(
    hourly: Schedules, starts: Starts, clock: Clock, datasets: Datasets, dataset_id: str
) -> None:
    datasets.delete(dataset_id)
    clock.move(hours=1)
    assert starts.start_due() == [None]
    schedule = hourly.get("nightly")
    [run] = schedule.runs
    assert (run.status, run.job) == ("failed", None)
    assert dataset_id in str(run.outcome)
    assert schedule.next_due == NOON + timedelta(hours=2)
    with pytest.raises(Conflict, match="nightly"):
        hourly.run("nightly")


def test_a_run_waits_for_the_quota_of_its_key_and_ends_with_it(
    database: Database, datasets: Datasets, clock: Clock, starts: Starts
) -> None:
    keys = Keys(database)
    key, _ = keys.create("anna", Scope.TRAIN, limits=Limits(queued_jobs=1))
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
    [second] = starts.start_due()
    end(Jobs(database), second)
    keys.revoke(key.id)
    clock.move(hours=1)
    assert starts.start_due() == [None, None]
    assert {schedules.get(name).runs[0].status for name in ("one", "two")} == {"failed"}


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "zone", "after", "due"),
    [
        ("0 3 * * *", "Europe/Paris", "2026-07-01T00:00", "2026-07-01T01:00"),
        ("0 3 * * *", "Europe/Paris", "2026-12-01T00:00", "2026-12-01T02:00"),
        # 2026-03-29: 2:00 becomes 3:00. The time that is skipped is due right after the gap.
        ("30 2 * * *", "Europe/Paris", "2026-03-28T12:00", "2026-03-29T01:00"),
        # 2026-10-25: 3:00 becomes 2:00. The time that comes twice is due once.
        ("30 2 * * *", "Europe/Paris", "2026-10-24T12:00", "2026-10-25T00:30"),
        ("30 2 * * *", "Europe/Paris", "2026-10-25T00:30", "2026-10-26T01:30"),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00", "2028-02-29T00:00"),
    ],
)
def test_the_clock_of_a_place(expression: str, zone: str, after: str, due: str) -> None:
    assert next_due(expression, zone, at(after)) == at(due)
