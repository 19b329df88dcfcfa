"""From a query on a named database to one file in a folder of ours."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from core.exceptions import Invalid
from core.sources import secrets as named
from core.sources.budget import Budget
from core.sources.databases.rows import MEDIA_TYPE
from core.sources.files import Fetched
from core.sources.rules import DATABASE, Rules
from core.sources.secrets import Secrets
from core.sources.source import QuerySource

Read: TypeAlias = Callable[[Any, str, Path, Budget], int]

READERS = {
    "postgresql": "postgresql",
    "mysql": "mysql",
    "sqlite": "sqlite",
    "duckdb": "duckdb_file",
}
"""The modules of `core.sources.databases` by kind; a driver is loaded when a query needs it."""


def fetch(  # noqa: PLR0917
    source: QuerySource, rules: Rules, secrets: Secrets, owner: str, folder: Path, budget: Budget
) -> Fetched:
    """Run a query and write its result to a file in `folder`.

    Raises:
        Invalid: the database is closed, or the query is refused.
        TooLarge, Unavailable: see `core.sources.databases`.
    """
    rules.check_database(source.database)
    secret = named.find(secrets, source.database, owner, DATABASE)
    if secret.kind not in READERS:
        raise Invalid([(DATABASE, f"the secret {source.database!r} is no database")])
    read: Read = import_module(f"core.sources.databases.{READERS[secret.kind]}").read
    to = folder / "result.arrow"
    rows = read(secret, source.query, to, budget)
    return Fetched(to, MEDIA_TYPE, secret.kind, {"rows": rows})
