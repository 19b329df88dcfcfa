"""The tool that follows a job, and shows what came of it."""

import asyncio
from typing import Annotated, Any, ClassVar

from pydantic import Field

from credence.agents.brief import present, scores
from credence.agents.tool import Tool, Wait, page
from credence.client import AsyncClient
from credence.client.job_calls import FINAL_STATUSES
from credence.progress import fraction_of, seconds_left
from credence.types import Job as JobState
from credence.types import Json

POLL_SECONDS = 0.5, 2.0  # the first pause and the longest
MOST_PROGRESS = 0.99  # of a job that has not ended: it publishes what it trained


class Job(Tool):
    """Show a job: its state, its progress, and its result once it has ended.

    Waits up to `wait_seconds` for the end. The job goes on if you stop waiting: call it again. With
    `cancel` the job is stopped.
    """

    changes: ClassVar[bool] = True
    job: Annotated[str, Field(pattern="^job_", description="id of the job")]
    wait_seconds: Wait = 20
    cancel: Annotated[bool, Field(description="stop the job instead")] = False

    async def run(self, client: AsyncClient) -> Json:
        """The state of the job, and what came of it."""
        if self.cancel:
            await client.cancel(self.job)
        return await ended(client, self.job, self.wait_seconds)


async def ended(client: AsyncClient, job_id: str, wait_seconds: int) -> Json:
    """The state of a job when it has ended, or after so many seconds, with its result."""
    job = await client.job(job_id)
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + wait_seconds, POLL_SECONDS[0]
    while job["status"] not in FINAL_STATUSES and loop.time() + pause <= deadline:
        await asyncio.sleep(pause)
        job, pause = await client.job(job_id), min(2 * pause, POLL_SECONDS[1])
    return state_of(client, job) | await _result(client, job)


def state_of(client: AsyncClient, job: JobState) -> Json:
    """The state of a job in short."""
    is_over = job["status"] in FINAL_STATUSES
    return present(
        job=job["id"],
        kind=job["kind"],
        status=job["status"],
        model=job["model"],
        version=job["version"],
        progress=None if is_over else min(fraction_of(job), MOST_PROGRESS) or None,
        seconds_left=seconds_left(job),
        jobs_before_it=(job["queue_position"] or 1) - 1 or None,
        error=job["error"],
        page=page(client, f"/jobs/{job['id']}"),
        next=None if is_over else f"call job with job={job['id']!r} until it has ended",
    )


async def _result(client: AsyncClient, job: JobState) -> Json:
    """What came of a job that has succeeded."""
    if job["kind"] == "compare" and job["status"] in FINAL_STATUSES:
        return {"methods": [_method(one) for one in await client.comparison(job["id"])]}
    if job["status"] != "succeeded":
        return {}
    if job["kind"] == "train":
        version = await client.version(job["model"], job["version"])
        return {
            "scores": scores(version["metrics"]),
            "next": "call model_card to see how far to trust it, then predict",
        }
    return {"result": job["metrics"]}


def _method(compared: Any) -> Json:
    """A row of the table: the scores and the verdict."""
    left_out = ("job", "bytes", "standard_errors", "optimism", "compared_rows", "name")
    return present(
        name=compared["name"],
        **{name: value for name, value in compared.items() if name not in left_out},
    )
