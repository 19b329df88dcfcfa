"""What a run writes at its end: alias, outcome, event, audit line and version together, or none."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from core.access.audit import Audit
from core.database.database import Database
from core.datasets.datasets import Datasets
from core.exceptions import LostClaim
from core.jobs.jobs import Claim, Jobs
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry, Version
from core.schedules.runs import Decision, Runs, settling
from core.schedules.schedules import Schedule, Schedules, When
from core.schedules.starts import Starts
from tests.core.schedules.conftest import Clock

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


def test_a_run_keeps_its_rows_for_the_next_attempt(
    nightly: Nightly, datasets: Datasets, database: Database
) -> None:
    claim, spec = nightly.start()
    newer, _ = datasets.add_columns("newer", {"x": [1.0, 2.0], "y": [3.0, 4.0]})
    assert spec.scheduled is not None
    prepared = spec.scheduled.model_copy(update={"is_prepared": True})
    spec = spec.model_copy(update={"dataset": newer.id, "scheduled": prepared})
    Runs(database).prepare(claim, spec)
    nightly.jobs.release(claim)
    job = nightly.jobs.get(claim.job_id)
    assert (job.dataset, nightly.schedule.dataset) == (newer.id, newer.id)
    assert TrainSpec.model_validate(job.spec) == spec


def test_a_run_with_nothing_new_ends_with_the_version_that_knows_the_rows(
    nightly: Nightly, database: Database
) -> None:
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
