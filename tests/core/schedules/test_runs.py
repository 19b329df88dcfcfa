"""What a run writes at its end: alias, outcome, event, audit line and version together, or none."""

from pathlib import Path

import pytest
from sqlalchemy import select

from core.access.audit import Audit
from core.database.database import Database
from core.database.schema import JobRow
from core.datasets.datasets import Datasets
from core.exceptions import LostClaim
from core.jobs.jobs import Claim, Jobs
from core.jobs.specs import TrainSpec
from core.registry.registry import Registry, Version
from core.schedules.runs import Decision, Runs, settling
from core.schedules.schedules import Schedules, When
from core.schedules.starts import Starts
from tests.core.schedules.conftest import Clock

PASSES = Decision(passed=True, reason="it is better", champion=None, measured={"rows": 50})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """What a training leaves."""
    path = tmp_path / "model"
    path.mkdir()
    (path / "model.json").write_text("{}")
    return path


@pytest.fixture
def nightly(schedules: Schedules, scheduled: TrainSpec) -> Schedules:
    schedules.create("nightly", scheduled, When("0 * * * *"), {})
    return schedules


def claimed(jobs: Jobs, starts: Starts, clock: Clock) -> tuple[Claim, TrainSpec]:
    clock.move(hours=1)
    [job] = starts.start_due()
    claim = jobs.claim(str(job), "worker-1", 60)
    assert claim is not None
    return claim, TrainSpec.model_validate(jobs.get(str(job)).spec)


def publish(
    registry: Registry, claim: Claim, spec: TrainSpec, directory: Path, decision: Decision
) -> Version:
    gate = settling(claim, spec, decision)
    return registry.publish(claim, spec.model, directory, {}, spec.dataset, None, gate)


def test_version_alias_and_outcome_come_together(
    *,
    nightly: Schedules,
    registry: Registry,
    jobs: Jobs,
    starts: Starts,
    clock: Clock,
    directory: Path,
    database: Database,
) -> None:
    claim, spec = claimed(jobs, starts, clock)
    version = publish(registry, claim, spec, directory, PASSES)
    assert version.aliases == ("champion",)
    [run] = nightly.get("nightly").runs
    assert (run.status, run.version) == ("passed", 1)
    assert Runs(database).decision(claim.job_id) == "passed"
    kinds = [event.type for event in jobs.events(claim.job_id)]
    assert kinds.index("gate") < len(kinds) - 1, "before the end of the job, which ends streams"
    claim, spec = claimed(jobs, starts, clock)
    refusal = Decision(passed=False, reason="it is worse", champion=1, measured={})
    assert publish(registry, claim, spec, directory, refusal).aliases == ()
    assert registry.get("square", "champion").version == 1
    assert nightly.get("nightly").runs[0].outcome["reason"] == "it is worse"  # type: ignore[index]
    lines = [line.action for line in Audit(database).list(object="square/champion").data]
    assert lines == ["gate.refused", "gate.passed", "alias.set"]


def test_a_worker_that_lost_its_job_moves_nothing(
    *,
    nightly: Schedules,
    registry: Registry,
    jobs: Jobs,
    starts: Starts,
    clock: Clock,
    directory: Path,
    database: Database,
) -> None:
    claim, spec = claimed(jobs, starts, clock)
    jobs.reap(jobs.pulses(), 3)
    again = jobs.claim(claim.job_id, "worker-2", 60)
    assert again is not None
    with pytest.raises(LostClaim):
        publish(registry, claim, spec, directory, PASSES)
    assert Audit(database).list(object="square/champion").data == []
    assert nightly.get("nightly").runs[0].status == "running"
    assert publish(registry, again, spec, directory, PASSES).aliases == ("champion",)
    assert len(Audit(database).list(object="square/champion").data) == 2


def test_a_run_keeps_its_rows_for_the_next_attempt(
    *,
    nightly: Schedules,
    jobs: Jobs,
    starts: Starts,
    clock: Clock,
    datasets: Datasets,
    database: Database,
) -> None:
    claim, spec = claimed(jobs, starts, clock)
    newer, _ = datasets.add_columns("newer", {"x": [1.0, 2.0], "y": [3.0, 4.0]})
    assert spec.scheduled is not None
    prepared = spec.scheduled.model_copy(update={"is_prepared": True})
    spec = spec.model_copy(update={"dataset": newer.id, "scheduled": prepared})
    Runs(database).prepare(claim, spec)
    assert jobs.get(claim.job_id).dataset == newer.id
    stored = TrainSpec.model_validate(jobs.get(claim.job_id).spec)
    assert stored == spec
    assert nightly.get("nightly").dataset == newer.id
    jobs.release(claim)
    with database.read() as session:
        [row] = session.scalars(select(JobRow)).all()
    assert row.dataset == newer.id


def test_a_run_with_nothing_new_ends_with_the_version_that_knows_the_rows(
    *,
    nightly: Schedules,
    registry: Registry,
    jobs: Jobs,
    starts: Starts,
    clock: Clock,
    directory: Path,
    database: Database,
) -> None:
    runs = Runs(database)
    claim, spec = claimed(jobs, starts, clock)
    assert runs.learned(claim, spec.dataset) is None
    publish(registry, claim, spec, directory, PASSES)
    claim, spec = claimed(jobs, starts, clock)
    assert runs.learned(claim, spec.dataset) == 1
    assert runs.learned(claim, "ds_other") is None
    runs.end_unchanged(claim, spec, 1)
    job = jobs.get(claim.job_id)
    assert (job.status, job.version) == ("succeeded", 1)
    assert nightly.get("nightly").runs[0].status == "unchanged"


def test_a_deleted_schedule_leaves_the_gate_to_its_job(
    *,
    nightly: Schedules,
    registry: Registry,
    jobs: Jobs,
    starts: Starts,
    clock: Clock,
    directory: Path,
    database: Database,
) -> None:
    claim, spec = claimed(jobs, starts, clock)
    nightly.delete("nightly")
    assert Runs(database).caller(claim, spec).actor == "schedule nightly"
    assert publish(registry, claim, spec, directory, PASSES).aliases == ("champion",)
    assert "gate" in [event.type for event in jobs.events(claim.job_id)]
