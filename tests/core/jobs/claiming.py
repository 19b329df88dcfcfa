"""What a worker does with jobs, and what is told of them."""

from core.jobs.jobs import Claim, Job, Jobs

LEASE = 60.0


def claimed(jobs: Jobs, job_id: str, worker: str = "worker-1") -> Claim:
    claim = jobs.claim(job_id, worker, LEASE)
    assert claim is not None
    return claim


def states(jobs: Jobs, job: Job) -> list[str]:
    """The states that a job has had, by its events."""
    return [event.data["status"] for event in jobs.events(job.id) if event.type == "state"]


def statuses(jobs: Jobs, whole: Job) -> list[str]:
    return [part.status.value for part in jobs.parts(whole.id)]
