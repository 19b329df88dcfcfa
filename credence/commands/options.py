"""Options that several commands share."""

from typing import Annotated

import typer

from credence.client import DEFAULT_URL

Url = Annotated[
    str,
    typer.Option("--url", envvar="CREDENCE_URL", help="Address of the service."),
]
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="Show at most this many.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the service's answer as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

__all__ = ["DEFAULT_URL", "AsJson", "Limit", "Url", "Yes"]
