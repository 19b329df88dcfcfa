"""The command `credence`: all its commands.

Exit codes: 0 success · 1 refused or could not start · 2 wrong use or settings · 3 no response ·
4 the job failed
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from credence import __version__
from credence.agents import command as agents
from credence.commands import (
    acquire,
    audit,
    compare,
    datasets,
    expected,
    feedback,
    jobs,
    models,
    open_page,
    predict,
    schedules,
    train,
    webhooks,
)
from credence.commands.near import SuggestingGroup
from credence.rendering import fail
from credence.safe_path import keep_children_out

TRAIN, SERVE, MANAGE = "Train and predict", "Run the service", "Inspect and manage"
SERVICE_COMMANDS = ("serve", "api", "worker", "migrate", "doctor", "backup", "restore", "keys")
EXIT_NOT_INSTALLED = 2

app = typer.Typer(
    name="credence",
    cls=SuggestingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"credence {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the release and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Train models that know what they don't know, and predict with them.

    First: `credence serve`, and in another terminal `credence train FILE --target COLUMN`.
    """


def _not_installed(context: typer.Context) -> None:
    """End a command that needs the service, which is not installed."""
    fail(
        f"`credence {context.info_name}` needs the service, only the client is installed: "
        "in a clone, pip install ./credence ./credence/scoring .",
        EXIT_NOT_INSTALLED,
    )


for command in (
    train.train,
    compare.compare,
    predict.predict,
    feedback.feedback,
    expected.expected,
    acquire.acquire,
):
    app.command(rich_help_panel=TRAIN)(command)
if find_spec("credence.serving"):
    service = import_module("credence.serving.commands")
    for command in service.COMMANDS:
        app.command(rich_help_panel=SERVE)(command)
    app.add_typer(service.KEYS, name="keys", rich_help_panel=SERVE)
else:
    ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}
    for name in SERVICE_COMMANDS:
        app.command(name, hidden=True, context_settings=ANY_ARGUMENTS)(_not_installed)
app.command(rich_help_panel=TRAIN)(agents.mcp)
app.command("open", rich_help_panel=MANAGE)(open_page.open_page)
app.command(rich_help_panel=MANAGE)(audit.audit)
GROUPS = {
    "models": models.app,
    "datasets": datasets.app,
    "jobs": jobs.app,
    "schedules": schedules.app,
    "webhooks": webhooks.app,
}
for name, group in GROUPS.items():
    app.add_typer(group, name=name, rich_help_panel=MANAGE)


def main() -> None:
    """Entry point of the `credence` command."""
    keep_children_out()
    app(prog_name="credence")
