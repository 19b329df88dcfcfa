"""Runs are started once, by whichever worker comes first, and missed ones are caught up once."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.access.audit import Audit
from core.access.keys import Keys, Limits, Scope
from core.database.database import Database
from core.datasets.datasets import Datasets
from core.exceptions import Conflict, LostClaim
from core.jobs.jobs import Claim, Jobs, JobStatus
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry, Version
from core.schedules.cron import next_due
from core.schedules.runs import Decision, Runs, settling
from core.schedules.schedules import Schedule, Schedules, When
from core.schedules.starts import Starts
from tests.core.schedules.conftest import NOON, Clock, scheduled_spec
from tests.core.together import at_once

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


PASSES = Decision(passed=True, reason="it is better", champion=None, measured={"rows": 50})


@dataclass
class Nightly:
    """A schedule, and a worker that takes its runs."""

    schedules: Schedules
    registry: Registry
    jobs: Jobs
    starts: Starts
    clock: Clock
    artifact: Path

    @property
    def schedule(self) -> Schedule:
        return self.schedules.get("nightly")

    def start(self) -> tuple[Claim, TrainSpec]:
        self.clock.move(hours=1)
        [job] = self.starts.start_due()
        claim = self.jobs.claim(str(job), "worker-1", 60)
        assert claim is not None
        return claim, TrainSpec.model_validate(self.jobs.get(str(job)).spec)

    def publish(self, claim: Claim, spec: TrainSpec, decision: Decision = PASSES) -> Version:
        gate = settling(claim, spec, decision)
        return self.registry.publish(claim, spec.model, self.artifact, {}, spec.dataset, None, gate)


@pytest.fixture
def nightly(request: pytest.FixtureRequest, schedules: Schedules, scheduled: TrainSpec) -> Nightly:
    schedules.create("nightly", scheduled, When("0 * * * *"), {})
    parts = ("registry", "jobs", "starts", "clock", "artifact")
    return Nightly(schedules, *(request.getfixturevalue(part) for part in parts))


def test_version_alias_and_outcome_come_together(nightly: Nightly, database: Database) -> None:
    claim, spec = nightly.start()
    assert nightly.publish(claim, spec).aliases == ("champion",)
    [run] = nightly.schedule.runs
    assert (run.status, run.version) == ("passed", 1)
    assert Runs(database).decision(claim.job_id) == "passed"
    kinds = [event.type for event in nightly.jobs.events(claim.job_id)]
    assert kinds.index("gate") < len(kinds) - 1, "before the end of the job, which ends streams"
    claim, spec = nightly.start()
    refusal = Decision(passed=False, reason="it is worse", champion=1, measured={})
    assert nightly.publish(claim, spec, refusal).aliases == ()
    assert nightly.registry.get("square", "champion").version == 1
    assert nightly.schedule.runs[0].outcome["reason"] == "it is worse"  # type: ignore[index]
    lines = [line.action for line in Audit(database).list(object="square/champion").data]
    assert lines == ["gate.refused", "gate.passed", "alias.set"]


def test_a_worker_that_lost_its_job_moves_nothing(nightly: Nightly, database: Database) -> None:
    claim, spec = nightly.start()
    nightly.jobs.reap(nightly.jobs.pulses(), 3)
    again = nightly.jobs.claim(claim.job_id, "worker-2", 60)
    assert again is not None
    with pytest.raises(LostClaim):
        nightly.publish(claim, spec)
    assert Audit(database).list(object="square/champion").data == []
    assert nightly.schedule.runs[0].status == "running"
    assert nightly.publish(again, spec).aliases == ("champion",)


def test_a_run_with_nothing_new_ends(nightly: Nightly, database: Database) -> None:
    runs = Runs(database)
    claim, spec = nightly.start()
    assert runs.learned(claim, spec.dataset) is None
    nightly.publish(claim, spec)
    claim, spec = nightly.start()
    assert (runs.learned(claim, spec.dataset), runs.learned(claim, "ds_other")) == (1, None)
    runs.end_unchanged(claim, spec, 1)
    job = nightly.jobs.get(claim.job_id)
    assert (job.status, job.version) == ("succeeded", 1)
    assert nightly.schedule.runs[0].status == "unchanged"


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
