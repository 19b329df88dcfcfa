"""A run while it is worked on: its caller, what it learns from, and what its gate decided.

All that a run changes is written in the transaction in which its job changes: the data set before
the training, and the alias, the outcome and the version at the end.
"""

from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from core.access import audit
from core.access.callers import Caller, View
from core.clock import now
from core.database.database import Database
from core.database.schema import (
    AliasRow,
    JobRow,
    Json,
    ScheduleRow,
    ScheduleRunRow,
    VersionRow,
)
from core.jobs import events
from core.jobs.specs import TrainSpec
from core.jobs.transitions import Claim, JobStatus, change_claimed, complete, lock_claimed
from core.registry import versions
from core.registry.registry import AlsoPublished
from core.schedules.starts import caller_of
from core.webhooks.event_types import EventType
from core.webhooks.outbox import tell

PASSED, REFUSED, UNCHANGED = "passed", "refused", "unchanged"
TOLD = {PASSED: EventType.GATE_PASSED, REFUSED: EventType.GATE_REFUSED}
"""The events of which webhooks are told."""


@dataclass(frozen=True)
class Decision:
    """What the gate decided on a version.

    Args:
        champion: the version that had the alias when the scores were compared; None if there was
            none.
        measured: see `models.evaluation.gate.Verdict`, and which rows were scored.
    """

    passed: bool
    reason: str
    champion: int | None
    measured: Json


class Runs:
    """The runs of schedules, for the worker that has claimed the job of one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def caller(self, claim: Claim, spec: TrainSpec) -> Caller:
        """Whom the run acts for: of a schedule that was deleted meanwhile, the job's owner.

        Raises:
            NoKey: see `core.schedules.starts.caller_of`.
        """
        with self._database.read() as session:
            row = _schedule_of(session, claim)
            return _auditor(session, claim, spec) if row is None else caller_of(session, row)

    def prepare(self, claim: Claim, spec: TrainSpec) -> None:
        """Store what a run is to do, now that its data set is known.

        The schedule goes on from this data set. If it waits for refreshes, it has seen this one.
        """
        document = spec.model_dump(mode="json")
        with self._database.begin() as session:
            lock_claimed(session, claim)
            change_claimed(session, claim, spec=document, dataset=spec.dataset)
            row = _schedule_of(session, claim)
            if row is not None:
                row.dataset = spec.dataset
                document["scheduled"]["is_prepared"] = False
                row.spec = document
                row.next_due = None if row.cron is None else row.next_due

    def learned(self, claim: Claim, dataset: str) -> int | None:
        """The version that the newest earlier run made of this data set; None if it made none."""
        with self._database.read() as session:
            own = _run_of(session, claim)
            if own is None:
                return None
            earlier = select(ScheduleRunRow).where(
                ScheduleRunRow.schedule == own.schedule,
                ScheduleRunRow.number < own.number,
                ScheduleRunRow.outcome.is_not(None),
            )
            runs = session.scalars(earlier.order_by(ScheduleRunRow.number.desc()))
            outcomes = (run.outcome or {} for run in runs)
            found = next((one for one in outcomes if one.get("version") is not None), {})
            return found["version"] if found.get("dataset") == dataset else None

    def decision(self, job_id: str) -> str | None:
        """What the gate decided on a job; None if it has not."""
        query = select(ScheduleRunRow.outcome).where(ScheduleRunRow.job == job_id)
        with self._database.read() as session:
            outcome = session.scalars(query).one_or_none()
        return None if outcome is None else str(outcome["decision"])

    def end_unchanged(self, claim: Claim, spec: TrainSpec, version: int) -> None:
        """End a job that has nothing new to learn. Raises `LostClaim`."""
        reason = f"data set {spec.dataset} has the rows that version {version} learned from"
        with self._database.begin() as session:
            if lock_claimed(session, claim) is JobStatus.CANCELLING:
                complete(session, claim, JobStatus.CANCELLED)
                return
            decision = Decision(passed=False, reason=reason, champion=None, measured={})
            _record(session, claim, spec, UNCHANGED, _outcome(spec, UNCHANGED, version, decision))
            complete(session, claim, JobStatus.SUCCEEDED, version=version)


def settling(claim: Claim, spec: TrainSpec, decision: Decision) -> AlsoPublished:
    """A function that carries out a decision in the transaction that publishes the version.

    It moves the alias, and stores the outcome with the run, as an event of the job and in the audit
    log. If the alias was moved since the scores were compared, it stays where it is.
    """

    def settle(session: Session, row: VersionRow) -> None:
        _settle(session, claim, spec, row, decision)

    return settle


def _settle(
    session: Session, claim: Claim, spec: TrainSpec, row: VersionRow, decision: Decision
) -> None:
    alias = str(spec.alias)
    current = _version_with(session, row.model, alias)
    if current != decision.champion:
        decision = _overtaken(alias, current, decision)
    name = PASSED if decision.passed else REFUSED
    if decision.passed:
        versions.set_alias(session, row, alias)
        what = f"{row.model}/{alias}"
        details = {"version": row.version, "before": current, "job": claim.job_id}
        audit.record(session, _auditor(session, claim, spec), "alias.set", what, **details)
    _record(session, claim, spec, name, _outcome(spec, name, row.version, decision))


def _outcome(spec: TrainSpec, name: str, version: int, decision: Decision) -> Json:
    return {
        "decision": name,
        "reason": decision.reason,
        "version": version,
        "champion": decision.champion,
        "dataset": spec.dataset,
        "time": now().isoformat(),
        **decision.measured,
    }


def _record(session: Session, claim: Claim, spec: TrainSpec, name: str, outcome: Json) -> None:
    """Write the outcome to the run, the job's events and the audit log; tell the webhooks."""
    assert spec.scheduled is not None
    about: Json = {"schedule": spec.scheduled.schedule, "model": spec.model, "alias": spec.alias}
    own = update(ScheduleRunRow).where(ScheduleRunRow.job == claim.job_id)
    session.execute(own.values(outcome=outcome))
    events.append(session, claim.job_id, "gate", about | outcome)
    caller, what = _auditor(session, claim, spec), f"{spec.model}/{spec.alias}"
    short = {key: outcome[key] for key in ("reason", "version", "champion")}
    short |= {"schedule": spec.scheduled.schedule, "job": claim.job_id}
    audit.record(session, caller, f"gate.{name}", what, **short)
    if name in TOLD:
        tell(session, caller.owner, TOLD[name], what, about | outcome | {"job": claim.job_id})


def _overtaken(alias: str, current: int | None, decision: Decision) -> Decision:
    before, after = _named(decision.champion), _named(current)
    reason = (
        f"the alias {alias!r} was moved from {before} to {after} while this run went on: "
        "run the schedule again"
    )
    return Decision(False, reason, current, decision.measured)


def _named(version: int | None) -> str:
    return "no version" if version is None else f"version {version}"


def _version_with(session: Session, model: str, alias: str) -> int | None:
    query = select(AliasRow.version).where(AliasRow.model == model, AliasRow.alias == alias)
    return session.scalars(query).one_or_none()


def _run_of(session: Session, claim: Claim) -> ScheduleRunRow | None:
    query = select(ScheduleRunRow).where(ScheduleRunRow.job == claim.job_id)
    return session.scalars(query).one_or_none()


def _schedule_of(session: Session, claim: Claim) -> ScheduleRow | None:
    query = select(ScheduleRow).join(ScheduleRunRow, ScheduleRunRow.schedule == ScheduleRow.number)
    return session.scalars(query.where(ScheduleRunRow.job == claim.job_id)).one_or_none()


def _auditor(session: Session, claim: Claim, spec: TrainSpec) -> Caller:
    owner = session.scalars(select(JobRow.owner).where(JobRow.id == claim.job_id)).one()
    return Caller(View(owner, sees_all=False), _actor(spec))


def _actor(spec: TrainSpec) -> str:
    assert spec.scheduled is not None
    return f"schedule {spec.scheduled.schedule}"
