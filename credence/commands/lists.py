"""How much of a list a command shows, and what it says of the rest."""

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

from credence.rendering import note

T = TypeVar("T")
IN_A_TABLE = 20


def shown(items: Iterable[T], limit: int | None, *, as_json: bool) -> list[T]:
    """The first `limit` items, by default 20 for a table and all for JSON; a note if more exist."""
    if limit is None and as_json:
        return list(items)
    count = IN_A_TABLE if limit is None else limit
    found = list(islice(items, count + 1))
    if len(found) > count:
        note(f"these are the first {count}; more exist: set --limit")
    return found[:count]
