"""`credence audit`: the audit log."""

from typing import Annotated

import typer

from credence.commands.connection import connect
from credence.commands.lists import shown
from credence.commands.options import AsJson, Limit, Url
from credence.rendering import print_json, print_table


def audit(
    owner: Annotated[str | None, typer.Option(help="Only actions by keys of this owner.")] = None,
    object: Annotated[str | None, typer.Option(help="Only actions on this object.")] = None,
    limit: Limit = None,
    as_json: AsJson = False,
    url: Url = None,
) -> None:
    """Show the audit log, newest first; needs a key of scope admin.

    Example: `credence audit --object concrete/champion`
    """
    with connect(url) as client:
        lines = shown(client.audit(owner, object), limit, as_json=as_json)
    if as_json:
        print_json(lines)
        return
    names = ["time", "actor", "owner", "action", "object", "request_id"]
    print_table([*names[:-1], "request"], ([line[name] for name in names] for line in lines))  # type: ignore[literal-required]
