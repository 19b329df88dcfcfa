"""Columns that hold next to nothing: constants, and columns that are nearly empty."""

from collections.abc import Iterator

from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.finding import Finding, fix_column
from models.features.columns import level_text
from models.messages import counted

_EMPTY = 0.95  # missing values ÷ rows
_SHOWN = 60  # characters of the one value


def find_constants(columns: list[CheckedColumn]) -> Iterator[Finding]:
    """A finding for each column without information: one value, or none, or hardly any."""
    for one in columns:
        if not one.num_present:
            message = f"column {one.name!r} is empty in all {one.num_rows} rows"
            yield _finding(one, "constant", message)
        elif one.is_constant:
            yield _finding(one, "constant", _constant(one))
        elif one.profile.missing > _EMPTY * one.num_rows:
            share = 100 * one.profile.missing / one.num_rows
            values = counted(one.num_present, "value")
            message = f"column {one.name!r} has only {values}: {share:.1f} % are missing"
            yield _finding(one, "nearly_empty", message)


def _constant(one: CheckedColumn) -> str:
    value = f"column {one.name!r} is {_value(one)}"
    if not one.profile.missing:
        return f"{value} in every row"
    return (
        f"{value} in {counted(one.num_present, 'row')} and missing in {one.profile.missing}: "
        "a model can learn only from whether it is missing"
    )


def _value(one: CheckedColumn) -> str:
    if one.profile.levels:
        return repr(one.profile.levels[0][:_SHOWN])
    if one.profile.type == "boolean":
        return level_text(bool(one.profile.min))
    return level_text(float(one.profile.min or 0.0))


def _finding(one: CheckedColumn, code: str, message: str) -> Finding:
    return Finding(
        code="constant" if code == "constant" else "nearly_empty",
        severity="info",
        column=one.name,
        message=message,
        rows=one.num_present,
        fix=fix_column(one.name, use=False),
    )
