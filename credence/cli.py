"""The command line: what exists and how it exits.

0 done · 1 the service said no · 2 wrong use or settings · 3 no answer · 4 the job failed
"""

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

app = typer.Typer(
    name="credence",
    help="Train models that know what they don't know, and predict with them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for command in (
    service.serve,
    service.api,
    service.worker,
    migrate.migrate,
    doctor.doctor,
    backup.backup,
    backup.restore,
    train.train,
    compare.compare,
    predict.predict,
    feedback.feedback,
    audit.audit,
):
    app.command()(command)
for name, group in (
    ("jobs", jobs.app),
    ("models", models.app),
    ("datasets", datasets.app),
    ("keys", keys.app),
):
    app.add_typer(group, name=name)


def main() -> None:
    """Entry point of the `credence` command."""
    app()
