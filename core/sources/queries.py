"""From a query on a named database to one file in a folder of ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.exceptions import Invalid
from core.sources import secrets as named
from core.sources.budget import Budget
from core.sources.databases import duckdb_file, postgresql, sqlite
from core.sources.databases.rows import MEDIA_TYPE
from core.sources.files import Fetched
from core.sources.rules import DATABASE, Rules
from core.sources.secrets import Secrets
from core.sources.source import QuerySource

READERS: dict[str, Callable[[Any, str, Path, Budget], int]] = {
    "postgresql": postgresql.read,
    "sqlite": sqlite.read,
    "duckdb": duckdb_file.read,
}


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
    read = READERS.get(secret.kind)
    if read is None:
        raise Invalid([(DATABASE, f"the secret {source.database!r} is no database")])
    to = folder / "result.arrow"
    rows = read(secret, source.query, to, budget)
    return Fetched(to, MEDIA_TYPE, secret.kind, {"rows": rows})
