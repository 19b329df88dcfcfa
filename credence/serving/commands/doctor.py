"""`credence doctor`: examine an installation and advise."""
# ruff: noqa: PLC0415

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from credence.rendering import print_json, print_table
from credence.serving.commands.service import DataDir

if TYPE_CHECKING:
    from core.maintenance.doctor import Diagnosis

EXIT_BROKEN = 1


def doctor(
    data_dir: DataDir = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Examine this installation with the service's settings; the service need not run.

    Exit code 1 if something is broken, 0 if there are only warnings. Secrets are never shown.

    Example: `credence doctor --data-dir /var/lib/credence`
    """
    from core.exceptions import InvalidSetting
    from core.maintenance.doctor import Diagnosis, Finding, State, examine, verdict
    from core.settings import load_settings
    from core.telemetry.logging import configure_logging

    configure_logging(level="error")
    try:
        settings = load_settings(**({} if data_dir is None else {"data_dir": data_dir}))
        found = [Diagnosis("settings", Finding(State.GOOD, "understood")), *examine(settings)]
    except InvalidSetting as error:
        advice = "docs/operations.md lists the settings"
        found = [Diagnosis("settings", Finding(State.BROKEN, str(error), advice))]
    _show(found, verdict(found), as_json=as_json)
    raise typer.Exit(EXIT_BROKEN if verdict(found) == "broken" else 0)


def _show(found: "Sequence[Diagnosis]", verdict: str, *, as_json: bool) -> None:
    rows = [
        {
            "check": diagnosis.name,
            "state": diagnosis.finding.state.value,
            "found": diagnosis.finding.found,
            "advice": diagnosis.finding.advice,
        }
        for diagnosis in found
    ]
    if as_json:
        print_json({"state": verdict, "checks": rows})
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])
