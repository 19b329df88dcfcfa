"""`credence jobs`: list, show, follow, cancel and resume jobs."""

from typing import Annotated

import typer

from credence.commands.completion import job_ids
from credence.commands.connection import connect
from credence.commands.following import check_succeeded
from credence.commands.following import watch as watch_progress
from credence.commands.lists import shown
from credence.commands.options import AsJson, Limit, Url
from credence.commands.sharing import add_share
from credence.rendering import note, print_comparison, print_job, print_jobs, print_json

app = typer.Typer(no_args_is_help=True, help="Jobs: list, follow, cancel and resume them.")

JobId = Annotated[
    str,
    typer.Argument(help="Id of the job, as `credence train` prints it.", autocompletion=job_ids),
]


@app.command("list")
def list_jobs(
    status: Annotated[str | None, typer.Option(help="Only jobs in this state.")] = None,
    model: Annotated[str | None, typer.Option(help="Only jobs of this model.")] = None,
    limit: Limit = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """List the newest jobs.

    Example: `credence jobs list --status running`
    """
    with connect(url) as client:
        jobs = shown(client.jobs(status, model), limit, as_json=as_json)
    if not jobs:
        none = "no such jobs" if status or model else "no jobs yet"
        note(f"{none}: `credence train FILE --target COLUMN` makes one")
    print_json(jobs) if as_json else print_jobs(jobs)


@app.command()
def show(job: JobId, as_json: AsJson = False, url: Url = None) -> None:
    """Show one job: state, progress, metrics, error.

    Example: `credence jobs show job_01`
    """
    with connect(url) as client:
        answer = client.job(job)
    print_json(answer) if as_json else print_job(answer)


@app.command()
def watch(job: JobId, as_json: AsJson = False, url: Url = None) -> None:
    """Follow a job until it ends; exit code 4 if it fails or is cancelled.

    For a comparison it shows the table of scores.

    Example: `credence jobs watch job_01`
    """
    with connect(url) as client:
        ended = watch_progress(client, job)
        if ended["kind"] == "compare" and not as_json:
            print_comparison(client.comparison(job))
    if as_json:
        print_json(ended)
    check_succeeded(ended)
    if not as_json:
        print_job(ended)


@app.command()
def cancel(job: JobId, as_json: AsJson = False, url: Url = None) -> None:
    """Cancel a job; a running one stops between two mini-batches and keeps its checkpoint.

    Example: `credence jobs cancel job_01`
    """
    with connect(url) as client:
        answer = client.cancel(job)
    print_json(answer) if as_json else print_job(answer)


@app.command()
def resume(job: JobId, as_json: AsJson = False, url: Url = None) -> None:
    """Queue a failed or cancelled job again; it continues from its checkpoint.

    Example: `credence jobs resume job_01`
    """
    with connect(url) as client:
        answer = client.resume(job)
    print_json(answer) if as_json else print_job(answer)


add_share(app, "jobs", "job_01")
