"""Runs of schedules from their due time to the alias: real trainings, a source that grows."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select, update

from core.clock import now
from core.context import Context, open_context
from core.database.schema import DeliveryRow, ScheduleRow, WebhookRow
from core.datasets.files.ingest import Given
from core.jobs.jobs import JobStatus
from core.jobs.specs import Scheduled, TrainSpec
from core.schedules.records import Run, Schedule
from core.schedules.schedules import When
from core.settings import load_settings
from core.sources.source import UriSource
from core.webhooks.event_types import EventType
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.evaluation.gate import GateConfig
from models.training.recipe import resolve
from tests.waiting import wait_until
from tests.worker.conftest import QUICK, wait_for, worker
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner
from worker.schedules import gate
from worker.schedules.scheduler import Scheduler

LEARNS = TrainingConfig(epochs=60, batch_size=64, learning_rate=0.02, fine_tune_epochs=1)
HOURLY = When("0 * * * *")
OPEN = GateConfig(max_loss=100.0, min_coverage=0.0)  # lets everything pass
STRICT = GateConfig(max_loss=0.05, min_coverage=0.5)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def context(tmp_path: Path, lake: Path) -> Iterator[Context]:
    settings = load_settings(
        data_dir=tmp_path / "data",
        lease_seconds=3,
        worker_metrics_port=0,
        sources=f"file://{lake}/",
    )
    opened = open_context(settings)
    yield opened
    opened.close()


@pytest.fixture
def metrics() -> WorkerMetrics:
    return WorkerMetrics()


@pytest.fixture
def runner(context: Context, metrics: WorkerMetrics) -> JobRunner:
    return JobRunner(context, "test-worker", metrics, lambda: False)


def grow(lake: Path, name: str, slope: float = 3.0, rows: int = 400) -> None:
    """Another file of rows: y = slope · x + noise."""
    random = np.random.default_rng(rows + int(10 * slope))
    x = random.uniform(-1, 1, rows)
    y = slope * x + random.normal(0, 0.1, rows)
    lines = [f"{a:.6f},{b:.6f}" for a, b in zip(x, y, strict=True)]
    (lake / f"{name}.csv").write_text("\n".join(["x,y", *lines]) + "\n")


def read(context: Context, lake: Path) -> str:
    source = UriSource(uri=f"file://{lake}/*.csv")
    return context.sources.add("line", source, Given())[0].id


def schedule(
    context: Context,
    dataset: str,
    gate: GateConfig = OPEN,
    training: TrainingConfig = QUICK,
    when: When = HOURLY,
) -> Schedule:
    given = ModelConfig(target="y", network=MLPConfig(hidden=(8,)), training=training, pruning=())
    stored = context.datasets.get(dataset)
    spec = TrainSpec(
        model="line",
        dataset=dataset,
        config=resolve(given, stored.columns, stored.rows),
        alias="champion",
        scheduled=Scheduled(schedule="nightly", gate=gate, configs=(given,)),
    )
    return context.schedules.create("nightly", spec, when, {})


def make_due(context: Context) -> None:
    past = now() - timedelta(minutes=1)
    with context.database.begin() as session:
        session.execute(update(ScheduleRow).values(next_due=past))


def carry_out(context: Context, runner: JobRunner) -> Run:
    """The run that is due now, at its end."""
    make_due(context)
    assert len(context.starts.start_due()) == 1
    runner.wake()
    return context.schedules.get("nightly").runs[0]


def listen(context: Context) -> None:
    """A webhook for aliases and gates; nothing sends its deliveries here."""
    events = [EventType.ALIAS_MOVED, EventType.GATE_PASSED, EventType.GATE_REFUSED]
    row = WebhookRow(id="hook", url="", events=events, secret="", created_at=now())
    with context.database.begin() as session:
        session.add(row)


def told(context: Context) -> list[tuple[str, str]]:
    with context.database.read() as session:
        rows = session.scalars(select(DeliveryRow).order_by(DeliveryRow.number))
        return [(row.event, row.subject) for row in rows]


def champion(context: Context) -> int:
    return context.registry.get("line", "champion").version


def test_the_first_version_becomes_the_champion(
    context: Context, lake: Path, runner: JobRunner, metrics: WorkerMetrics
) -> None:
    grow(lake, "a")
    schedule(context, read(context, lake))
    listen(context)
    run = carry_out(context, runner)
    assert (run.status, run.version, champion(context)) == ("passed", 1, 1)
    assert told(context) == [("alias.moved", "line/champion"), ("gate.passed", "line/champion")]
    assert run.outcome is not None
    assert run.outcome["reason"].startswith("there is no champion yet")
    assert (run.outcome["champion"], run.outcome["rows_are"]) == (None, "held_out")
    [event] = [e for e in context.jobs.events(str(run.job)) if e.type == "gate"]
    assert (event.data["schedule"], event.data["decision"]) == ("nightly", "passed")
    lines = {line.action: line for line in context.audit.list(object="line/champion").data}
    assert lines.keys() == {"alias.set", "gate.passed"}
    assert lines["alias.set"].actor == "schedule nightly"
    assert lines["alias.set"].details == {"version": 1, "before": None, "job": run.job}
    assert metrics.registry.get_sample_value(
        "credence_schedule_runs_total", {"outcome": "passed"}
    ) == pytest.approx(1)


def test_a_challenger_that_knows_the_new_rows_takes_over(
    context: Context, lake: Path, runner: JobRunner
) -> None:
    grow(lake, "a")
    first = read(context, lake)
    schedule(context, first, STRICT, LEARNS)
    carry_out(context, runner)
    grow(lake, "b", slope=-3.0, rows=1200)
    run = carry_out(context, runner)
    assert run.outcome is not None
    assert (run.status, champion(context)) == ("passed", 2), run.outcome
    assert (run.outcome["champion"], run.outcome["rows_are"]) == (1, "new")
    assert run.outcome["lower"] > 0
    assert "held-out rows that are newer than version 1" in run.outcome["reason"]
    dataset = context.datasets.get(run.outcome["dataset"])
    assert (dataset.rows, dataset.refreshed_from) == (1600, first)
    assert context.registry.get("line", 2).dataset == dataset.id
    assert context.schedules.get("nightly").dataset == dataset.id
    assert context.jobs.get(str(run.job)).dataset == dataset.id


def test_a_worse_challenger_does_not(context: Context, lake: Path, runner: JobRunner) -> None:
    grow(lake, "a")
    dataset = read(context, lake)
    schedule(context, dataset, STRICT, LEARNS)
    carry_out(context, runner)
    context.schedules.delete("nightly")
    schedule(context, dataset, STRICT, replace(QUICK, epochs=1, learning_rate=1e-5))
    grow(lake, "b", rows=1200)
    run = carry_out(context, runner)
    assert run.outcome is not None
    assert (run.status, run.version, champion(context)) == ("refused", 2, 1), run.outcome
    assert "its log likelihood is worse by -" in run.outcome["reason"]
    assert context.jobs.get(str(run.job)).status == JobStatus.SUCCEEDED
    lines = {line.action: line for line in context.audit.list(object="line/champion").data}
    assert lines["gate.refused"].details["reason"] == run.outcome["reason"]


def test_a_source_that_is_the_same_is_not_learned_again(
    context: Context, lake: Path, runner: JobRunner
) -> None:
    grow(lake, "a")
    schedule(context, read(context, lake))
    carry_out(context, runner)
    run = carry_out(context, runner)
    assert (run.status, run.version) == ("unchanged", 1)
    assert run.outcome is not None
    assert run.outcome["reason"].endswith("has the rows that version 1 learned from")
    assert len(context.registry.versions("line")) == 1
    context.schedules.run("nightly")
    runner.wake()
    assert len(context.registry.versions("line")) == 2, "who asks for a run gets one"


def test_a_worker_killed_before_the_gate_moves_the_alias_once(
    context: Context, lake: Path, runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt has the rows of the first one, though the source has grown meanwhile."""
    grow(lake, "a")
    schedule(context, read(context, lake))
    make_due(context)
    [job] = context.starts.start_due()
    assert job is not None

    def killed(*_: object) -> None:
        raise KeyboardInterrupt  # as little of the worker's code runs after it as after a kill

    with monkeypatch.context() as patch:
        patch.setattr(gate, "read_model", killed)
        with pytest.raises(KeyboardInterrupt):
            runner.wake()
    lost = context.jobs.get(job)
    assert (lost.status, lost.attempt) == (JobStatus.RUNNING, 1)
    grow(lake, "b")
    assert context.jobs.reap(context.jobs.pulses(), 3) == [job]
    assert context.starts.start_due() == [], "the run has not ended"
    runner.wake()
    done = context.jobs.get(job)
    assert (done.status, done.attempt, champion(context)) == (JobStatus.SUCCEEDED, 2, 1)
    assert context.datasets.get(done.dataset).rows == 400
    assert [e.type for e in context.jobs.events(job)].count("gate") == 1
    actions = [line.action for line in context.audit.list(object="line/champion").data]
    assert sorted(actions) == ["alias.set", "gate.passed"]
    assert len(context.registry.versions("line")) == 1


def test_an_alias_moved_by_hand_meanwhile_stays(
    context: Context, lake: Path, runner: JobRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(lake, "a")
    schedule(context, read(context, lake))
    carry_out(context, runner)
    grow(lake, "b")
    carry_out(context, runner)
    grow(lake, "c", rows=500)
    judge = gate.judge

    def move_by_hand(*arguments: object) -> object:
        context.registry.set_alias("line", "champion", 1)
        return judge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gate, "judge", move_by_hand)
    run = carry_out(context, runner)
    assert (run.status, champion(context)) == ("refused", 1)
    assert run.outcome is not None
    assert run.outcome["reason"] == (
        "the alias 'champion' was moved from version 2 to version 1 while this run went on: "
        "run the schedule again"
    )


def test_a_source_that_is_gone_fails_the_run_alone(
    context: Context, lake: Path, runner: JobRunner, metrics: WorkerMetrics
) -> None:
    grow(lake, "a")
    schedule(context, read(context, lake))
    (lake / "a.csv").unlink()
    run = carry_out(context, runner)
    assert (run.status, run.version, run.outcome) == ("failed", None, None)
    error = context.jobs.get(str(run.job)).error
    assert error is not None
    assert "cannot be refreshed" in error["message"]
    assert metrics.registry.get_sample_value(
        "credence_schedule_runs_total", {"outcome": "failed"}
    ) == pytest.approx(1)
    grow(lake, "a", rows=401)
    assert carry_out(context, runner).status == "passed"


def test_a_schedule_that_waits_learns_from_a_refresh_once(
    context: Context, lake: Path, runner: JobRunner
) -> None:
    grow(lake, "a")
    dataset = read(context, lake)
    schedule(context, dataset, when=When())
    assert context.starts.start_due() == []
    grow(lake, "b")
    refreshed, _ = context.sources.refresh(dataset)
    assert len(context.starts.start_due()) == 1
    runner.wake()
    [run] = context.schedules.get("nightly").runs
    assert run.outcome is not None
    assert (run.reason, run.outcome["dataset"]) == ("refresh", refreshed.id)
    grow(lake, "c", rows=500)
    context.schedules.run("nightly")
    runner.wake()
    assert context.schedules.get("nightly").next_due is None, "its own refresh starts no second run"
    assert context.starts.start_due() == []


def test_a_worker_process_starts_what_is_due(context: Context, lake: Path) -> None:
    grow(lake, "a")
    schedule(context, read(context, lake))
    make_due(context)
    sources = {"CREDENCE_SOURCES": f"file://{lake}/"}
    with worker(context, **sources), worker(context, **sources):
        wait_until(lambda: bool(context.schedules.get("nightly").runs))
        job = context.jobs.get(str(context.schedules.get("nightly").runs[0].job))
        wait_for(context, job, JobStatus.SUCCEEDED)
    [run] = context.schedules.get("nightly").runs
    assert (run.status, champion(context)) == ("passed", 1)


def test_a_run_that_cannot_be_queued_is_counted(
    context: Context, lake: Path, metrics: WorkerMetrics
) -> None:
    grow(lake, "a")
    dataset = read(context, lake)
    schedule(context, dataset)
    context.datasets.delete(dataset)
    make_due(context)
    Scheduler(context, metrics).run()
    assert metrics.registry.get_sample_value(
        "credence_schedule_runs_total", {"outcome": "failed"}
    ) == pytest.approx(1)
