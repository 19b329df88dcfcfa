"""Upload, train, wait, and print the progress."""

import time
from pathlib import Path

from credence.client import Client
from credence.types import Job, Json, Version

SECONDS_BETWEEN_LINES = 5.0


def train(client: Client, path: Path, request: Json) -> Version:
    """Upload a file, train the default recipe on it and return the new version.

    Raises:
        RuntimeError: the job failed.
    """
    dataset = client.upload(path)
    print(f"\nPOST /datasets  {path.name}: {dataset['rows']} rows, {dataset['bytes']:,} bytes")
    job = client.submit_train({"dataset": dataset["id"], **request})
    print(f"POST /train     {job['id']}")
    started = time.monotonic()
    job = wait(client, job)
    print(f"                trained in {time.monotonic() - started:.0f} s")
    return client.version(job["model"], job["version"] or 1)


def wait(client: Client, job: Job, *, quiet: bool = False) -> Job:
    """Wait for a job and print its progress every few seconds.

    Raises:
        RuntimeError: the job did not succeed.
    """
    last_line = time.monotonic()

    def show(job: Job) -> None:
        nonlocal last_line
        due = time.monotonic() - last_line >= SECONDS_BETWEEN_LINES
        if due and job["progress"] and not quiet:
            last_line = time.monotonic()
            print(f"                {_describe(job)}")

    job = client.wait(job["id"], show)
    if job["status"] != "succeeded":
        raise RuntimeError(f"{job['id']} {job['status']}: {job['error']}")
    return job


def _describe(job: Job) -> str:
    progress = job["progress"]
    assert progress is not None
    eta = progress["eta_seconds"]
    remaining = "" if eta is None else f", {eta:.0f} s left"
    epoch = f"epoch {progress['epoch']} of {progress['epochs']}"
    return f"{progress['fraction']:4.0%}  {progress['stage']} {epoch}{remaining}"
