"""The records of schedules and of their runs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.jobs.specs import Reason


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run of a schedule.

    Args:
        missed: due times before `due_at` that this run catches up.
        job: the training; None if it could not be queued.
        status: what the gate decided (`passed`, `refused`), `unchanged` if there was nothing new to
            learn, `failed` if no job could be queued; until then the status of the job.
        version: what the training published.
        outcome: what the gate decided and why; see `core.schedules.runs`.
    """

    number: int
    reason: Reason
    due_at: datetime
    missed: int
    job: str | None
    status: str
    version: int | None
    outcome: dict[str, Any] | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A training that is repeated, and its newest runs.

    Args:
        request: the body of `POST /train`, without inline rows.
        dataset: the newest data set, which the next run refreshes.
        cron: None if the schedule runs when its data set is refreshed.
        next_due: None if it waits for a refresh.
        runs: newest first.
    """

    name: str
    owner: str
    model: str
    alias: str
    request: dict[str, Any]
    dataset: str
    cron: str | None
    time_zone: str
    gate: dict[str, Any]
    next_due: datetime | None
    created_at: datetime
    runs: tuple[Run, ...]

    @property
    def on(self) -> str | None:
        """ "refresh" for a schedule without a cron expression."""
        return "refresh" if self.cron is None else None
