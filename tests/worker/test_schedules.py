"""Runs of schedules from their due time to the alias: real trainings, a source that grows."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import select, update

from core.clock import now
from core.context import Context
from core.database.schema import AuditRow, DeliveryRow, ScheduleRow, WebhookRow
from core.datasets.files.ingest import Given
from core.jobs.jobs import JobStatus
from core.jobs.specs import Scheduled, TrainSpec
from core.schedules.records import Run
from core.schedules.schedules import When
from core.sources.source import UriSource
from core.webhooks.event_types import EventType
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.evaluation.gate import GateConfig
from models.training.recipe import resolve
from tests.worker.conftest import QUICK, opened
from worker.metrics import WorkerMetrics
from worker.runner import JobRunner
from worker.schedules import gate

LEARNS = TrainingConfig(epochs=30, batch_size=64, learning_rate=0.04, fine_tune_epochs=1)
HOURLY = When("0 * * * *")
OPEN = GateConfig(max_loss=100.0, min_coverage=0.0)  # lets everything pass
STRICT = GateConfig(max_loss=0.05, min_coverage=0.5)


class Nightly:
    """A lake that grows, and a schedule that learns from it."""

    def __init__(self, context: Context, lake: Path, metrics: WorkerMetrics) -> None:
        self.context, self.lake, self._metrics = context, lake, metrics
        self.runner = JobRunner(context, "worker", metrics, lambda: False)
        source = UriSource(uri=f"file://{lake}/*.csv")
        self.dataset = context.sources.add("line", source, Given())[0].id

    def schedule(
        self, gate: GateConfig = OPEN, training: TrainingConfig = QUICK, when: When = HOURLY
    ) -> None:
        network = MLPConfig(hidden=(8,))
        given = ModelConfig(target="y", network=network, training=training, pruning=())
        stored = self.context.datasets.get(self.dataset)
        spec = TrainSpec(
            model="line",
            dataset=self.dataset,
            config=resolve(given, stored.columns, stored.rows),
            alias="champion",
            scheduled=Scheduled(schedule="nightly", gate=gate, configs=(given,)),
        )
        self.context.schedules.create("nightly", spec, when, {})

    def make_due(self) -> None:
        past = now() - timedelta(minutes=1)
        with self.context.database.begin() as session:
            session.execute(update(ScheduleRow).values(next_due=past))

    def start_due(self) -> str:
        """The job of the run that is due now."""
        self.make_due()
        [job] = self.context.starts.start_due()
        assert job is not None
        return job

    def carry_out(self) -> Run:
        """The run that is due now, at its end."""
        self.start_due()
        self.runner.wake()
        return self.runs()[0]

    def replace(self, table: "Table") -> None:
        """The lake has these rows, and no others."""
        rows = zip(*table.values(), strict=True)
        lines = [",".join(map(str, row)) for row in (tuple(table), *rows)]
        (self.lake / "a.csv").write_text("\n".join(lines) + "\n")
        self.dataset = self.context.sources.refresh(self.dataset)[0].id

    def runs(self) -> list[Run]:
        return self.context.schedules.get("nightly").runs

    def champion(self) -> int:
        return self.context.registry.get("line", "champion").version

    def counted(self, outcome: str) -> float | None:
        name, labels = "credence_schedule_runs_total", {"outcome": outcome}
        return self._metrics.registry.get_sample_value(name, labels)

    def audited(self) -> dict[str, AuditRow]:
        """The lines on the alias, by action."""
        lines = self.context.audit.list(object="line/champion").data
        assert len({line.action for line in lines}) == len(lines)
        return {line.action: line for line in lines}


@pytest.fixture
def nightly(tmp_path: Path, metrics: WorkerMetrics) -> Iterator[Nightly]:
    lake = tmp_path / "lake"
    lake.mkdir()
    grow(lake, "a")
    with opened(tmp_path / "data", sources=f"file://{lake}/") as context:
        yield Nightly(context, lake, metrics)


def grow(lake: Path, name: str, slope: float = 3.0, rows: int = 400) -> None:
    """Another file of rows: y = slope · x + noise."""
    random = np.random.default_rng(rows + int(10 * slope))
    x = random.uniform(-1, 1, rows)
    y = slope * x + random.normal(0, 0.1, rows)
    lines = [f"{a:.6f},{b:.6f}" for a, b in zip(x, y, strict=True)]
    (lake / f"{name}.csv").write_text("\n".join(["x,y", *lines]) + "\n")


def test_the_first_version_becomes_the_champion(nightly: Nightly) -> None:
    nightly.schedule()
    database = nightly.context.database
    events = [EventType.ALIAS_MOVED, EventType.GATE_PASSED, EventType.GATE_REFUSED]
    with database.begin() as session:
        session.add(WebhookRow(id="hook", url="", events=events, secret="", created_at=now()))
    run = nightly.carry_out()
    assert (run.status, run.version, nightly.champion()) == ("passed", 1, 1)
    assert run.outcome is not None
    assert (run.outcome["champion"], run.outcome["rows_are"]) == (None, "held_out")
    with database.read() as session:
        told = session.scalars(select(DeliveryRow).order_by(DeliveryRow.number))
        assert [row.event for row in told] == ["alias.moved", "gate.passed"]
    *events, last = nightly.context.jobs.events(str(run.job))
    [event] = [e for e in events if e.type == "gate"]  # before the end, which ends streams
    assert (event.data["schedule"], event.data["decision"]) == ("nightly", "passed")
    assert last.data["status"] == "succeeded"
    lines = nightly.audited()
    assert lines.keys() == {"alias.set", "gate.passed"}
    assert lines["alias.set"].actor == "schedule nightly"
    assert lines["alias.set"].details == {"version": 1, "before": None, "job": run.job}
    assert nightly.counted("passed") == 1


def test_a_run_with_nothing_new_ends(nightly: Nightly) -> None:
    nightly.schedule()
    nightly.carry_out()
    run = nightly.carry_out()
    assert (run.status, nightly.context.jobs.get(str(run.job)).version) == ("unchanged", 1)


def test_a_challenger_that_knows_the_new_rows_takes_over(nightly: Nightly) -> None:
    nightly.schedule(STRICT, LEARNS)
    nightly.carry_out()
    grow(nightly.lake, "b", slope=-3.0, rows=1200)
    run, context = nightly.carry_out(), nightly.context
    assert run.outcome is not None
    assert (run.status, nightly.champion()) == ("passed", 2), run.outcome
    assert (run.outcome["champion"], run.outcome["rows_are"]) == (1, "new")
    assert run.outcome["lower"] > 0
    refreshed = context.datasets.get(run.outcome["dataset"])
    assert (refreshed.rows, refreshed.refreshed_from) == (1600, nightly.dataset)
    of_the_run = (context.registry.get("line", 2), context.jobs.get(str(run.job)))
    assert {one.dataset for one in (*of_the_run, context.schedules.get("nightly"))} == {
        refreshed.id
    }


def test_a_worse_challenger_does_not(nightly: Nightly) -> None:
    nightly.schedule(STRICT, LEARNS)
    nightly.carry_out()
    nightly.context.schedules.delete("nightly")
    nightly.schedule(STRICT, replace(QUICK, epochs=1, learning_rate=1e-5))
    grow(nightly.lake, "b", rows=1200)
    run = nightly.carry_out()
    assert run.outcome is not None
    assert (run.status, run.version, nightly.champion()) == ("refused", 2, 1), run.outcome
    assert nightly.context.jobs.get(str(run.job)).status == JobStatus.SUCCEEDED
    lines = nightly.context.audit.list(object="line/champion").data
    [refused] = [line for line in lines if line.action == "gate.refused"]
    assert refused.details["reason"] == run.outcome["reason"]


Table = dict[str, list[float] | list[str]]


def table(**others: list[float] | list[str]) -> Table:
    """y follows from x, not from `id` and a."""
    random = np.random.default_rng(3)
    x, a = random.uniform(-1, 1, 400).round(6), random.normal(0, 1, 400).round(6)
    y = (3 * x + random.normal(0, 0.1, 400)).round(6)
    return {"a": a.tolist(), "x": x.tolist(), "y": y.tolist()} | others


def words(*names: str) -> list[str]:
    return [names[row % len(names)] for row in range(400)]


def reordered(one: Table, *names: str) -> Table:
    return {name: one[name] for name in names}


NOTES = [f"a long note on case {row} that nobody else has written" for row in range(400)]
CHANGES = {
    "a new column": (
        table(),
        table(z=table()["a"]),
        "it needs columns that callers of version 1 do not send: z",
    ),
    "a column that is gone": (
        table(),
        reordered(table(), "x", "y"),
        "it refuses columns that version 1 takes: a",
    ),
    "an unread column that is gone": (
        table(note=NOTES),
        table(),
        "it refuses columns that version 1 takes: note",
    ),
    "another type": (
        table(),
        table(a=words("low", "high")),
        "it takes a as category, not number",
    ),
    "another order": (
        table(),
        reordered(table(), "x", "a", "y"),
        "in rows without names it takes x where version 1 takes a",
    ),
    "another task": (
        table(),
        table(y=words("yes", "no")),
        "its task is classification, that of version 1 regression",
    ),
    "other classes": (
        table(y=words("red", "green")),
        table(y=words("red", "blue")),
        "it has classes that version 1 lacks: 'blue'; it lacks classes that version 1 has: 'green'",
    ),
}


@pytest.mark.parametrize(("before", "after", "change"), CHANGES.values(), ids=CHANGES)
def test_a_challenger_that_callers_cannot_use_does_not_take_over(
    nightly: Nightly, before: Table, after: Table, change: str
) -> None:
    """The gate lets any score pass, so it is the columns and answers that it refuses."""
    nightly.replace(before)
    nightly.schedule()
    assert nightly.carry_out().status == "passed"
    nightly.replace(after)
    run = nightly.carry_out()
    assert run.outcome is not None
    assert (run.status, run.version, nightly.champion()) == ("refused", 2, 1), run.outcome
    said = "Change what callers send and read, then move the alias yourself"
    assert run.outcome["reason"] == f"{change}. {said}"


def test_a_refused_challenger_may_be_made_the_champion_by_hand(nightly: Nightly) -> None:
    nightly.schedule()
    nightly.carry_out()
    nightly.replace(table())
    assert nightly.carry_out().status == "refused"
    nightly.context.registry.set_alias("line", "champion", 2)
    nightly.replace(table(note=NOTES))
    run = nightly.carry_out()
    assert (run.status, nightly.champion()) == ("passed", 3), "a column that it does not read"


def test_a_killed_worker_moves_the_alias(nightly: Nightly, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next attempt has the rows of the first one, though the source has grown meanwhile."""
    nightly.schedule()
    context, job = nightly.context, nightly.start_due()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt  # as little of the worker's code runs after it as after a kill

    with monkeypatch.context() as patch:
        patch.setattr(gate, "read_model", killed)
        with pytest.raises(KeyboardInterrupt):
            nightly.runner.wake()
    lost = context.jobs.get(job)
    assert (lost.status, lost.attempt) == (JobStatus.RUNNING, 1)
    grow(nightly.lake, "b")
    assert context.jobs.reap(context.jobs.pulses(), 3) == [job]
    assert context.starts.start_due() == [], "the run has not ended"
    nightly.runner.wake()
    done = context.jobs.get(job)
    assert (done.status, done.attempt, nightly.champion()) == (JobStatus.SUCCEEDED, 2, 1)
    assert context.datasets.get(done.dataset).rows == 400
    assert [e.type for e in context.jobs.events(job)].count("gate") == 1
    assert nightly.audited().keys() == {"alias.set", "gate.passed"}
    assert len(context.registry.versions("line")) == 1


def test_an_alias_moved_by_hand_stays(nightly: Nightly, monkeypatch: pytest.MonkeyPatch) -> None:
    nightly.schedule()
    for name in "bc":
        nightly.carry_out()
        grow(nightly.lake, name, rows=ord(name))
    judge = gate.judge

    def move_by_hand(*arguments: object) -> object:
        nightly.context.registry.set_alias("line", "champion", 1)
        return judge(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gate, "judge", move_by_hand)
    run = nightly.carry_out()
    assert (run.status, run.version, nightly.champion()) == ("refused", 3, 1)


def test_a_source_that_is_gone_fails_the_run_alone(nightly: Nightly) -> None:
    nightly.schedule()
    (nightly.lake / "a.csv").unlink()
    run = nightly.carry_out()
    assert (run.status, run.version, run.outcome) == ("failed", None, None)
    assert nightly.counted("failed") == 1
    grow(nightly.lake, "a", rows=401)
    assert nightly.carry_out().status == "passed"


def test_a_schedule_that_waits_learns_from_a_refresh_once(nightly: Nightly) -> None:
    nightly.schedule(when=When())
    context = nightly.context
    assert context.starts.start_due() == []
    grow(nightly.lake, "b")
    refreshed, _ = context.sources.refresh(nightly.dataset)
    assert len(context.starts.start_due()) == 1
    nightly.runner.wake()
    [run] = nightly.runs()
    assert run.outcome is not None
    assert (run.reason, run.outcome["dataset"]) == ("refresh", refreshed.id)
    grow(nightly.lake, "c", rows=500)
    context.schedules.run("nightly")
    nightly.runner.wake()
    assert context.schedules.get("nightly").next_due is None, "its own refresh starts no second run"
    assert context.starts.start_due() == []
