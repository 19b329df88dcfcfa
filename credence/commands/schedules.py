"""`credence schedules`: list, show, add, run and remove trainings that are repeated."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from credence.commands.completion import dataset_ids
from credence.commands.connection import connect
from credence.commands.following import check_succeeded, watch
from credence.commands.lists import shown
from credence.commands.options import AsJson, Limit, Url, Yes
from credence.rendering import note, print_json, print_table
from credence.types import Json, Schedule, ScheduleRun

app = typer.Typer(
    no_args_is_help=True, help="Schedules: trainings that are repeated, with a gate at their end."
)

Name = Annotated[str, typer.Argument(help="Name of the schedule.")]
WAITS = "a refresh"


@app.command("list")
def list_schedules(limit: Limit = None, as_json: AsJson = False, url: Url = None) -> None:
    """List the schedules, and what the gate of the newest run decided.

    Example: `credence schedules list`
    """
    with connect(url) as client:
        found = shown(client.schedules(), limit, as_json=as_json)
    if as_json:
        print_json(found)
        return
    if not found:
        note("no schedules yet: `credence schedules add` makes one")
    headers = ["name", "model", "alias", "runs", "next", "last run"]
    print_table(headers, (_row(schedule) for schedule in found))


@app.command()
def show(name: Name, limit: Limit = None, as_json: AsJson = False, url: Url = None) -> None:
    """Show the runs of a schedule, newest first, and why the alias was moved or not.

    Example: `credence schedules show nightly`
    """
    with connect(url) as client:
        schedule = client.schedule(name)
        runs = shown(client.schedule_runs(name), limit, as_json=as_json)
    if as_json:
        print_json({**schedule, "runs": runs})
        return
    print_table(["name", "model", "alias", "runs", "next", "last run"], [_row(schedule)])
    print_table(["run", "due", "status", "version", "job", "reason"], map(_run_row, runs))


@app.command()
def add(
    name: Name,
    dataset: Annotated[
        str | None,
        typer.Option(
            help="Id of the data set; each run reads its source again.", autocompletion=dataset_ids
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    model: Annotated[str | None, typer.Option(help="Default: the schedule's name.")] = None,
    *,
    alias: Annotated[str, typer.Option(help="What the gate moves.")] = "champion",
    cron: Annotated[
        str | None, typer.Option(help="Minute, hour, day, month, weekday: '0 3 * * *'.")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Whose clock --cron means, as Europe/Paris; default: UTC.")
    ] = None,
    on_refresh: Annotated[
        bool, typer.Option("--on-refresh", help="Run when a refresh gives other rows.")
    ] = False,
    max_loss: Annotated[
        float | None,
        typer.Option(help="The gate: nats per row that may be lost; default 0: must be better."),
    ] = None,
    min_coverage: Annotated[
        float | None, typer.Option(help="The gate: least coverage of 90 % intervals; default 0.87.")
    ] = None,
    train: Annotated[
        Path | None,
        typer.Option(
            help="A JSON file with the body of POST /train, for all other settings.",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Repeat a training; the alias moves only if the new version is not worse.

    Examples:

    `credence schedules add nightly --dataset ds_01 --target hires --cron '0 3 * * *'`

    `credence schedules add fresh --train request.json --on-refresh --max-loss 0.02`
    """
    given = {"model": model, "dataset": dataset, "target": target}
    request = {"model": name, "alias": alias} | _read(train) | _known(given)
    gate = _known({"max_loss": max_loss, "min_coverage": min_coverage})
    with connect(url) as client:
        made = client.create_schedule(
            name,
            request,
            cron=cron,
            time_zone=time_zone,
            on="refresh" if on_refresh else None,
            gate=gate or None,
        )
    if as_json:
        print_json(made)
        return
    typer.echo(f"{name} trains {made['model']} at {made['next_due'] or WAITS}")


@app.command()
def run(
    name: Name,
    wait: Annotated[bool, typer.Option(help="Wait until the run has ended.")] = True,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Run a schedule now; exit code 4 if its job fails. A refusal of the gate is no failure.

    Example: `credence schedules run nightly`
    """
    with connect(url) as client:
        started = client.run_schedule(name)
        job = started["job"]
        if wait and job is not None:
            check_succeeded(watch(client, job))
            runs = client.schedule_runs(name)
            started = next(one for one in runs if one["number"] == started["number"])
    if as_json:
        print_json(started)
        return
    typer.echo(f"run {started['number']} of {name}: {started['status']}")
    if reason := (started["outcome"] or {}).get("reason"):
        typer.echo(reason)


@app.command()
def remove(name: Name, yes: Yes = False, url: Url = None) -> None:
    """Stop repeating a training; a job that has begun goes on, and versions stay.

    Example: `credence schedules remove nightly`
    """
    if not yes:
        typer.confirm(f"Delete the schedule {name} and its list of runs?", abort=True)
    with connect(url) as client:
        client.delete_schedule(name)
    note(f"deleted {name}")


def _read(file: Path | None) -> Json:
    if file is None:
        return {}
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise typer.BadParameter(f"{file} is not JSON: {error}") from error
    if not isinstance(document, dict):
        raise typer.BadParameter(f"{file} must hold an object, the body of POST /train")
    return document


def _known(values: dict[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _row(schedule: Schedule) -> list[Any]:
    when = schedule["cron"] or f"on {WAITS}"
    zone = f" {schedule['time_zone']}" if schedule["cron"] else ""
    last = schedule["runs"][0]["status"] if schedule["runs"] else ""
    return [
        schedule["name"],
        schedule["model"],
        schedule["alias"],
        when + zone,
        schedule["next_due"] or "",
        last,
    ]


def _run_row(run: ScheduleRun) -> list[Any]:
    reason = (run["outcome"] or {}).get("reason", "")
    return [
        run["number"],
        run["due_at"],
        run["status"],
        run["version"] or "",
        run["job"] or "",
        reason,
    ]
