"""A query of a database, in a child process that can be killed.

A row may have a gigabyte, and what reads rows asks for many: what that takes is the child's.
"""

from pathlib import Path
from typing import Any

from core.exceptions import Unavailable
from core.sources import engine
from core.sources.budget import Budget
from core.sources.secrets import FileSecret, ServerSecret


def run(
    function: str,
    secret: FileSecret | ServerSecret,
    query: str,
    to: Path,
    budget: Budget,
    **more: Any,
) -> int:
    """Call `module:name` in a child, and write its output to an Arrow file. Returns its rows.

    Args:
        function: takes the file to write, `path` or `url`, `query`, `max_bytes` and `more`;
            returns `rows`.

    Raises:
        Unavailable: there is no file, or the server does not answer.
        Invalid, TooLarge, NotParseable: as `core.sources.engine.call`.
    """
    known = _place(secret) | {"query": query, "max_bytes": budget.max_bytes}
    what = "the result of the query"
    found, _ = engine.call(function, budget, what, to, **known, **more)
    return int(found["rows"])


def _place(secret: FileSecret | ServerSecret) -> dict[str, Any]:
    if isinstance(secret, ServerSecret):
        return {"url": secret.url.get_secret_value()}
    if not secret.path.is_file():
        raise Unavailable("the database cannot be opened")
    return {"path": str(secret.path)}
