"""The fixes of findings: whether they improve, in words, joined, and applied."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from credence.types import ColumnFix, Dataset, DatasetOptions, Finding, Json

if TYPE_CHECKING:
    from credence.client import Client


def improves(finding: Finding) -> bool:
    """Whether the service advises the fix; else it undoes how the table was read, or is another
    way to do what an advised fix does."""
    return finding["fix"] is not None and finding.get("advised", False)


def apply(
    client: "Client", dataset_id: str, fixes: Sequence[Json], name: str | None = None
) -> Dataset:
    """A new data set with all the fixes.

    Args:
        fixes: bodies for `POST /datasets/{id}/columns`.
    """
    columns, options = joined(fixes)
    return client.fix_columns(dataset_id, columns, name, **options)


def joined(fixes: Sequence[Json]) -> tuple[list[ColumnFix], DatasetOptions]:
    """The columns and the options of all fixes together.

    Raises:
        ValueError: two fixes contradict each other.
    """
    columns: dict[str, ColumnFix] = {}
    options: DatasetOptions = {}
    for fix in fixes:
        for change in fix.get("columns") or ():
            before = columns.get(change["name"])
            columns[change["name"]] = change if before is None else _both(before, change)
        options |= fix.get("options") or {}
    return list(columns.values()), options


def _both(one: ColumnFix, other: ColumnFix) -> ColumnFix:
    """Both fixes of a column; texts that stand for missing values, and merged levels, add up."""
    leaves_out = {fix.get("use") is False for fix in (one, other)}
    changed = {key for key, value in one.items() if other.get(key, value) != value}
    only_merges = any(fix.keys() <= {"name", "levels"} for fix in (one, other))
    if not only_merges and (len(leaves_out) > 1 or changed & {"type", "format"}):
        said = " or ".join(", ".join(_changes(fix)) for fix in (one, other))
        raise ValueError(f"two fixes of {one['name']!r} contradict each other: choose {said}")
    missing = [*one.get("missing", ()), *other.get("missing", ())]
    both: ColumnFix = {**one, **other}
    if levels := {**one.get("levels", {}), **other.get("levels", {})}:
        both["levels"] = levels
    return {**both, "missing": list(dict.fromkeys(missing))} if missing else both


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
    if levels := fix.get("levels"):
        changes += [f"{level!r} read as {meant!r}" for level, meant in levels.items()]
    elif levels is not None:
        changes.append("merge no levels")
    if fix.get("use") is not None:
        changes.append("use as a feature" if fix["use"] else "leave out of the features")
    return changes


def _phrase(name: str, value: Any) -> str:
    if name == "unique_rows":
        return "leave out rows that equal an earlier one" if value else "all rows stay"
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name} {shlex.quote(str(value))}"
