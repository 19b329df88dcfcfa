"""A query of a database that is a file, in a child process that can be killed."""

from pathlib import Path
from typing import Any

from core.exceptions import Unavailable
from core.sources import engine
from core.sources.budget import Budget
from core.sources.secrets import FileSecret


def run(
    function: str, secret: FileSecret, query: str, to: Path, budget: Budget, **more: Any
) -> int:
    """Call `module:name` in a child, and write its output to an Arrow file. Returns its rows.

    Args:
        function: takes the file to write, `path`, `query`, `max_bytes` and `more`; returns `rows`.

    Raises:
        Unavailable: there is no file.
        Invalid, TooLarge, NotParseable: as `core.sources.engine.call`.
    """
    if not secret.path.is_file():
        raise Unavailable("the database cannot be opened")
    known = {"path": str(secret.path), "query": query, "max_bytes": budget.max_bytes}
    found, output = engine.call(function, budget, "the result of the query", **known, **more)
    to.write_bytes(output)
    return int(found["rows"])
