"""The events that receivers can be told of."""

from enum import StrEnum


class EventType(StrEnum):
    """What happened, as webhooks name it."""

    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELLED = "job.cancelled"
    ALIAS_MOVED = "alias.moved"
    ALIAS_REMOVED = "alias.removed"
    GATE_PASSED = "gate.passed"
    GATE_REFUSED = "gate.refused"
    DRIFT_FOUND = "drift.found"
    COVERAGE_LEFT = "coverage.left"
    COVERAGE_BACK = "coverage.back"


OF_JOBS = {
    "succeeded": EventType.JOB_SUCCEEDED,
    "failed": EventType.JOB_FAILED,
    "cancelled": EventType.JOB_CANCELLED,
}
"""The event of a job's final status."""
