"""The fixes of findings: in words, joined, and applied."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from credence.types import ColumnFix, Dataset, Json, ReadingOptions

if TYPE_CHECKING:
    from credence.client import Client


def apply(
    client: "Client", dataset_id: str, fixes: Sequence[Json], name: str | None = None
) -> Dataset:
    """A new data set with all the fixes.

    Args:
        fixes: bodies for `POST /datasets/{id}/columns`.
    """
    columns: dict[str, ColumnFix] = {}
    options: ReadingOptions = {}
    for fix in fixes:
        merge(columns, fix.get("columns") or ())
        options |= fix.get("options") or {}
    return client.fix_columns(dataset_id, list(columns.values()), name, **options)


def merge(columns: dict[str, ColumnFix], more: Sequence[ColumnFix]) -> None:
    """Add fixes to those of the same columns; lists of missing values are joined."""
    for fix in more:
        before = columns.get(fix["name"], {"name": fix["name"]})
        both = [*before.get("missing", ()), *fix.get("missing", ())]
        columns[fix["name"]] = before | fix
        if both:
            columns[fix["name"]]["missing"] = list(dict.fromkeys(both))


def describe(fix: Json) -> str:
    """`price: type number, missing -`."""
    parts = [f"{one['name']}: {', '.join(_changes(one))}" for one in fix.get("columns") or ()]
    options = {
        name: value for name, value in (fix.get("options") or {}).items() if value is not None
    }
    parts += (
        [f"the file: {', '.join(_phrase(*item) for item in options.items())}"] if options else []
    )
    return "; ".join(parts)


def _changes(fix: ColumnFix) -> list[str]:
    changes = [f"{key} {fix[key]}" for key in ("type", "format") if fix.get(key)]
    if "missing" in fix:
        changes.append(f"missing {' '.join(map(shlex.quote, fix['missing'])) or 'nothing'}")
    if fix.get("use") is not None:
        changes.append("use as a feature" if fix["use"] else "leave out of the features")
    return changes


def _phrase(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name} {shlex.quote(str(value))}"
