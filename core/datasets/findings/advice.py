"""Which fixes are advice, and which of them can be applied together.

The dashboard, the command line and the tools for agents apply the fixes that this module advises.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from core.datasets.findings.finding import Code, Finding

Change = Mapping[str, Any]  # of one column

IMPROVING: frozenset[Code] = frozenset(
    (
        *("sentinel", "extreme", "leak", "many_levels", "numeric_code", "postal_code"),
        *("constant", "nearly_empty", "duplicate_column", "misspelt", "dates_as_numbers"),
    )
)
"""Findings whose fix improves something. The fix of most others undoes what was understood."""
MIXED = "mostly_"  # the fixes of these improve a column that has stayed a category


def improves(finding: Finding) -> bool:
    """Whether the fix is advice; else it undoes how most people would mean the table.

    A fix that reads the file in another way changes the columns, so it is never advice; but one
    that leaves copies of rows out is.
    """
    if not finding.fix:
        return False
    if options := finding.fix.get("options"):
        return bool(options == {"unique_rows": True})
    changes = finding.fix["columns"]
    if any(change.get("use") for change in changes):
        return False
    if finding.code.startswith(MIXED):
        return not any(change.get("type") in ("category", "text") for change in changes)
    return finding.severity == "error" or finding.code in IMPROVING


def advised(findings: Sequence[Finding]) -> list[bool]:
    """Of each finding, whether its fix is advice that fits the advice before it.

    Of two fixes that contradict each other, the first counts; but one that leaves a column out
    counts only if no other one says how to read that column.
    """
    chosen, known = [False] * len(findings), dict[str, list[Change]]()
    improving = [place for place, finding in enumerate(findings) if improves(finding)]
    for place in sorted(improving, key=lambda place: _leaves_out(findings[place])):
        changes = (findings[place].fix or {}).get("columns", ())
        if any(contradicts(c, other) for c in changes for other in known.get(c["name"], ())):
            continue
        chosen[place] = True
        for change in changes:
            known.setdefault(change["name"], []).append(change)
    return chosen


def contradicts(one: Change, other: Change) -> bool:
    """Whether two changes of a column exclude each other.

    They do if they give two types or formats, or if only one of them leaves the column out: what
    reads a column is no part of leaving it out. Texts that stand for missing values add up, and so
    do merged levels.
    """
    if _only_merges(one) or _only_merges(other):
        return False
    if (one.get("use") is False) != (other.get("use") is False):
        return True
    return any(one[key] != other[key] for key in ("type", "format") if key in one and key in other)


def _only_merges(change: Change) -> bool:
    """Whether it only merges levels, which neither uses a column nor leaves it out."""
    return change.keys() <= {"name", "levels"}


def _leaves_out(finding: Finding) -> bool:
    changes = (finding.fix or {}).get("columns", ())
    return any(change.get("use") is False for change in changes)
