"""Follow a job with a progress bar."""

from typing import TYPE_CHECKING

import typer

from credence.exceptions import JobFailed
from credence.progress import job_bar
from credence.rendering import errors, fail, note
from credence.types import Job

if TYPE_CHECKING:
    from credence.client import Client

EXIT_JOB_FAILED = 4
EXIT_INTERRUPTED = 130


def follow(client: "Client", job_id: str) -> Job:
    """Watch a job; `typer.Exit` with code 4 if it failed or was cancelled."""
    job = watch(client, job_id)
    check_succeeded(job)
    return job


def watch(client: "Client", job_id: str) -> Job:
    """Show a job's progress on standard error until it ends, and return it.

    Raises:
        typer.Exit: Ctrl-C stops watching. The job keeps running.
    """
    try:
        with job_bar(errors) as show:
            return client.wait(job_id, show)
    except KeyboardInterrupt:
        note(f"{job_id} keeps running; `credence jobs cancel {job_id}` stops it")
        raise typer.Exit(EXIT_INTERRUPTED) from None


def check_succeeded(job: Job) -> None:
    """End the command with code 4, and the reason, unless the job succeeded."""
    if job["status"] != "succeeded":
        fail(str(JobFailed(job)), EXIT_JOB_FAILED)
