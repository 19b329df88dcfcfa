"""Follow a job with a progress bar."""

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from credence.client import Client
from credence.rendering import errors, fail, note
from credence.types import Job

EXIT_JOB_FAILED = 4
EXIT_INTERRUPTED = 130


def follow(client: Client, job_id: str) -> Job:
    """As `watch`; `typer.Exit` with code 4 if the job failed or was cancelled."""
    job = watch(client, job_id)
    check_succeeded(job)
    return job


def watch(client: Client, job_id: str) -> Job:
    """Show a job's progress on standard error until it ends, and return it.

    Raises:
        typer.Exit: at Ctrl-C, which stops the watching, not the job.
    """
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}"),
        console=errors,
    )
    with bar:
        task = bar.add_task("waiting", total=1.0, note="")

        def show(job: Job) -> None:
            fraction = job["progress"]["fraction"] if job["progress"] else 0.0
            bar.update(task, description=job["status"], completed=fraction, note=_note(job))

        try:
            return client.wait(job_id, show)
        except KeyboardInterrupt:
            bar.stop()
            note(f"{job_id} goes on; `credence jobs cancel {job_id}` stops it")
            raise typer.Exit(EXIT_INTERRUPTED) from None


def check_succeeded(job: Job) -> None:
    """End the command with code 4, and the reason, unless the job succeeded."""
    if job["status"] != "succeeded":
        error = job["error"]
        reason = f"{error['message']} ({error['code']})" if error else job["status"]
        fail(f"{job['id']}: {reason}", EXIT_JOB_FAILED)


def _note(job: Job) -> str:
    if job["status"] == "queued":
        return f"position {job['queue_position']}"
    progress = job["progress"]
    if progress is None:
        return ""
    unit = next((unit for unit in ("chunk", "method") if unit in progress), "epoch")
    parts = [f"{unit} {progress.get(unit)}/{progress.get(f'{unit}s')}"]
    if "nelbo" in job["metrics"]:
        parts.append(f"nelbo {job['metrics']['nelbo']:.4g}")
    if progress["eta_seconds"] is not None and job["status"] == "running":
        parts.append(f"{progress['eta_seconds']:.0f} s left")
    return " · ".join(parts)
