"""The service's side of jobs: create, list, cancel, resume, and the events that tell of it."""

import pytest

from core.database.database import Database
from core.exceptions import Conflict
from core.jobs.jobs import Job, Jobs, JobStatus
from tests.core.jobs.claiming import claimed
from tests.core.together import at_once


def test_a_failed_job_is_resumed_from_where_it_was(jobs: Jobs, job: Job) -> None:
    with pytest.raises(Conflict, match="queued"):
        jobs.resume(job.id)
    claim = claimed(jobs, job.id)
    jobs.report(claim, {"epoch": 7})
    jobs.finish(claim, JobStatus.FAILED, error={"code": "diverged", "message": "NaN in the KL"})
    assert jobs.get(job.id).error == {"code": "diverged", "message": "NaN in the KL"}
    resumed = jobs.resume(job.id)
    assert (resumed.status, resumed.error, resumed.finished_at) == ("queued", None, None)
    assert resumed.progress == {"epoch": 7}
    assert claimed(jobs, job.id).attempt == 2


def test_writers_at_once_leave_no_gap_in_the_events(
    jobs: Jobs, job: Job, database: Database
) -> None:
    """The worker's loop, its heartbeat and the service write to one job: ids stay 1, 2, 3, …"""
    claim = claimed(jobs, job.id)

    def write(number: int) -> None:
        for i in range(5):
            Jobs(database).event(claim, "log", {"message": f"{number}.{i}"})

    at_once(write, 4)
    events = jobs.events(job.id)
    assert [event.id for event in events] == list(range(1, 23))
    assert len({event.data.get("message") for event in events[2:]}) == 20
