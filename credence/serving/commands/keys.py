"""`credence keys`: make, list and revoke keys, directly in the database."""
# ruff: noqa: PLC0415

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from credence.commands.options import AsJson, Yes
from credence.rendering import fail, note, print_json, print_table
from credence.serving.commands.service import DataDir, settings_from

if TYPE_CHECKING:
    from core.access.keys import Key, Keys

app = typer.Typer(no_args_is_help=True, help="Keys: make, list and revoke them.")

EXIT_REFUSED = 1

Most = Annotated[
    int | None, typer.Option(min=1, help="At most this many.", show_default="no limit")
]


@app.command()
def create(  # noqa: PLR0917 - options have names
    name: Annotated[str, typer.Option(help="Its owner or purpose.")],
    scope: Annotated[
        Literal["predict", "train", "admin"],
        typer.Option(help="Its permissions; train includes predict, admin all."),
    ],
    owner: Annotated[
        str | None,
        typer.Option(
            help="Owner of the objects that it makes and sees; default: the key's name. For the "
            "scope predict the default is to see all owners' models."
        ),
    ] = None,
    requests_per_minute: Most = None,
    stored_bytes: Most = None,
    queued_jobs: Most = None,
    data_dir: DataDir = None,
) -> None:
    """Make a key and print it once: only its hash is stored. There are no limits by default.

    Example: `credence keys create --name laptop --scope predict`

    Example: `credence keys create --name anna --scope train --owner analysts --queued-jobs 10`
    """
    from core.access.keys import Limits, Scope

    limits = Limits(
        requests_per_minute=requests_per_minute, stored_bytes=stored_bytes, queued_jobs=queued_jobs
    )
    with _keys(data_dir) as keys:
        key, text = keys.create(name, Scope(scope), owner, limits)
        others = [k.name for k in keys.valid() if key.owner and k.owner == key.owner and k != key]
    typer.echo(text)
    if others:
        shared = f"{key.owner!r} has keys already ({', '.join(others)}): they see the same objects"
        note(f"the owner {shared}; --owner sets another")
    note(f"{key.id} ({scope}): keep the key, it cannot be shown again")


@app.command("list")
def list_keys(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List all keys, revoked ones too, without the keys themselves.

    Example: `credence keys list`
    """
    with _keys(data_dir) as keys:
        found = keys.list()
    if as_json:
        print_json([_shown(key) for key in found])
        return
    headers = ["key", "name", "owner", "scope", "limits", "created", "last used", "revoked"]
    print_table(headers, (_line(_shown(key)) for key in found))


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Its id, as `list` shows it.")],
    yes: Yes = False,
    data_dir: DataDir = None,
) -> None:
    """Revoke a key; running services notice within seconds.

    Example: `credence keys revoke key_6f0c --yes`
    """
    if not yes:
        typer.confirm(f"Revoke {key_id} for good?", abort=True)
    with _keys(data_dir) as keys:
        key = keys.revoke(key_id)
    typer.echo(f"revoked {key.id} ({key.name})")


def _line(shown: dict[str, Any]) -> list[Any]:
    """The cells of a key, with all limits in one cell."""
    limits = {name.replace("_", " "): value for name, value in shown["limits"].items()}
    text = ", ".join(f"{value} {name}" for name, value in limits.items() if value is not None)
    return [text if name == "limits" else value for name, value in shown.items()]


def _shown(key: "Key") -> dict[str, Any]:
    times = {
        name: None if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"
        for name, time in asdict(key).items()
        if name.endswith("_at")
    }
    who = {"id": key.id, "name": key.name, "owner": key.owner or None, "scope": key.scope.value}
    return who | {"limits": asdict(key.limits)} | times


@contextmanager
def _keys(data_dir: Path | None) -> "Iterator[Keys]":
    """The table of keys, after migration; an error ends the command with a message."""
    from core.access.keys import Keys
    from core.database.database import migrate, opened
    from core.exceptions import CredenceError

    try:
        with opened(settings_from(data_dir).sqlalchemy_url) as database:
            migrate(database)
            yield Keys(database, actor="command line")
    except CredenceError as error:
        fail(str(error), EXIT_REFUSED)
