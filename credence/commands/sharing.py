"""`credence models share`, and the same for data sets and jobs."""

from typing import Annotated

import typer

from credence.commands.connection import connect
from credence.commands.options import AsJson, Url
from credence.rendering import print_json
from credence.types import Shared

Readers = Annotated[
    list[str] | None,
    typer.Option("--with", help="An owner who may see it; once per owner. '*' is everybody."),
]

TEXT = "Show which other owners may see it, or set them."


def add_share(app: typer.Typer, kind: Shared, example: str) -> None:
    """Add the command `share` to a group."""

    @app.command(help=f"{TEXT}\n\nExample: `credence {kind} share {example} --with analysts`")
    def share(
        identifier: Annotated[str, typer.Argument(help="Name or id of the object.")],
        readers: Readers = None,
        private: Annotated[bool, typer.Option("--private", help="Stop sharing it.")] = False,
        as_json: AsJson = False,
        url: Url = None,
    ) -> None:
        if private and readers:
            raise typer.BadParameter("give either --with or --private")
        with connect(url) as client:
            if readers or private:
                now = client.share(kind, identifier, readers or [])
            else:
                now = client.sharing(kind, identifier)
        if as_json:
            print_json({"with": now})
            return
        typer.echo(f"shared with {', '.join(now)}" if now else "shared with nobody")
