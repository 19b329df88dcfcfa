"""The command line: what exists and how it exits.

0 done · 1 the service said no · 2 wrong use or settings · 3 no answer · 4 the job failed
"""

from typing import Annotated

import typer

from credence.commands import (
    audit,
    backup,
    compare,
    datasets,
    doctor,
    feedback,
    jobs,
    keys,
    migrate,
    models,
    predict,
    service,
    train,
)


def _tell(wanted: bool) -> None:
    """Print the release and end."""
    if wanted:
        from core.release import release  # noqa: PLC0415 - for this option alone

        typer.echo(f"credence {release()}")
        raise typer.Exit


app = typer.Typer(
    name="credence",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the release and exit.", is_eager=True, callback=_tell),
    ] = False,
) -> None:
    """Train models that know what they don't know, and predict with them.

    First: `credence serve`, and in another terminal `credence train FILE --target COLUMN`.
    """


USE, RUN, LOOK = "Train and predict", "Run the service", "Look and tidy up"
COMMANDS = {
    USE: (train.train, compare.compare, predict.predict, feedback.feedback),
    RUN: (
        service.serve,
        service.api,
        service.worker,
        migrate.migrate,
        doctor.doctor,
        backup.backup,
        backup.restore,
    ),
    LOOK: (audit.audit,),
}
GROUPS = {
    "models": (models.app, LOOK),
    "datasets": (datasets.app, LOOK),
    "jobs": (jobs.app, LOOK),
    "keys": (keys.app, RUN),
}
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
for name, (group, panel) in GROUPS.items():
    app.add_typer(group, name=name, rich_help_panel=panel)


def main() -> None:
    """Entry point of the `credence` command."""
    app(prog_name="credence")
