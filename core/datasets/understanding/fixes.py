"""What the owner of a data set says about its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, get_args

from annotated_types import Len
from pydantic import Field

from core.exceptions import Invalid
from models.config import ColumnName
from models.features.columns import ColumnReading

MAX_MISSING = 100
FORMAT_DESCRIPTION = (
    "how the file writes 1234.56 (1.234,56 €), a date (%d.%m.%Y), or true and false (yes/no); "
    "exact for a category in which blanks and case count"
)

StoredType = Literal["number", "category", "boolean", "datetime", "text"]
Missing = Annotated[
    tuple[Annotated[str, Len(1, 100)], ...],
    Len(0, MAX_MISSING),
    Field(description="texts that stand for a missing value"),
]


@dataclass(frozen=True, kw_only=True)
class ColumnFix:
    """How to read one column. What is null or left out stays as it was read."""

    name: ColumnName
    type: StoredType | None = None
    format: Annotated[Annotated[str, Len(1, 100)] | None, Field(description=FORMAT_DESCRIPTION)] = (
        None
    )
    missing: Missing | None = None
    use: Annotated[
        bool | None,
        Field(description="whether it is a feature unless a training names its features"),
    ] = None


def merge(before: Sequence[ColumnFix], now: Sequence[ColumnFix]) -> tuple[ColumnFix, ...]:
    """All fixes, a later one of the same column over an earlier one.

    Raises:
        Invalid: `now` names a column twice.
    """
    names = [fix.name for fix in now]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise Invalid([(f"/columns/{place}/name", f"column {name!r} is given twice")])
    merged: dict[str, dict[str, Any]] = {fix.name: _given(fix) for fix in before}
    for fix in now:
        merged[fix.name] = merged.get(fix.name, {}) | _given(fix)
    return tuple(ColumnFix(**fix) for _, fix in sorted(merged.items()))


def fixes_like(readings: Sequence[ColumnReading]) -> tuple[ColumnFix, ...]:
    """What reads the columns of another file as these were read."""
    return tuple(map(_fix_like, readings))


def check_names(fixes: Sequence[ColumnFix], names: Sequence[str]) -> None:
    """Raise `Invalid` if a fix names no column; the message lists columns that exist."""
    known = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    unknown = [(place, fix.name) for place, fix in enumerate(fixes) if fix.name not in names]
    errors = [
        (f"/columns/{i}/name", f"no column {name!r}: there are {known}") for i, name in unknown
    ]
    if errors:
        raise Invalid(errors)


def to_json(fixes: Sequence[ColumnFix]) -> list[dict[str, Any]]:
    """Only what was given, for the database."""
    return [_given(fix) for fix in fixes]


def from_json(data: Sequence[Mapping[str, Any]]) -> tuple[ColumnFix, ...]:
    """The inverse of `to_json`."""
    return tuple(map(_fix, data))


def _fix(data: Mapping[str, Any]) -> ColumnFix:
    missing = data.get("missing")
    return ColumnFix(**{**data, "missing": None if missing is None else tuple(missing)})


def _given(fix: ColumnFix) -> dict[str, Any]:
    return {name: value for name, value in asdict(fix).items() if value is not None}


def _fix_like(reading: ColumnReading) -> ColumnFix:
    type_: Any = reading.type if reading.type in get_args(StoredType) else None
    return ColumnFix(
        name=reading.name,
        type=type_,
        format=reading.format,
        missing=reading.missing or None,
        use=reading.use,
    )
