"""What the owner of a data set says about its columns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal, get_args

from annotated_types import Len
from pydantic import Field

from core.datasets.profiles import MAX_LEVEL_LENGTH
from core.datasets.understanding.merging import composed
from core.datasets.understanding.missing import CLEAR
from core.datasets.understanding.number_formats import NumberFormat
from core.exceptions import Invalid
from models.config import ColumnName
from models.features.columns import ColumnReading

MAX_MISSING = 100
NO_LEVELS: Mapping[str, Collection[str]] = {}
MAX_MERGED = 1_000  # levels of a column
MAX_ALL_MERGED = 10_000  # levels of all columns: the row of the data set holds them
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
Level = Annotated[str, Len(1, MAX_LEVEL_LENGTH)]
Levels = Annotated[
    Mapping[Level, Level],
    Len(0, MAX_MERGED),
    Field(
        description="levels of a category that are read as another level of it, also in rows to "
        "predict; they are added to those of earlier changes, and {} undoes all"
    ),
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
    levels: Levels | None = None


def merge(before: Sequence[ColumnFix], now: Sequence[ColumnFix]) -> tuple[ColumnFix, ...]:
    """All fixes, a later one of the same column over an earlier one; merged levels add up.

    Raises:
        Invalid: `now` names a column twice, or all merge too many levels.
    """
    names = [fix.name for fix in now]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise Invalid([(f"/columns/{place}/name", f"column {name!r} is given twice")])
    merged: dict[str, dict[str, Any]] = {fix.name: _given(fix) for fix in before}
    for fix in now:
        earlier = merged.get(fix.name, {})
        both = earlier | _given(fix)
        if fix.levels is not None:
            both["levels"] = composed(earlier.get("levels", {}), fix.levels) or None
        merged[fix.name] = both
    if sum(len(fix.get("levels") or ()) for fix in merged.values()) > MAX_ALL_MERGED:
        raise Invalid([("/columns", f"merge at most {MAX_ALL_MERGED:,} levels of all columns")])
    return tuple(
        ColumnFix(**fix)
        for _, fix in sorted(merged.items())
        if any(value is not None for key, value in fix.items() if key != "name")
    )


def fixes_like(
    readings: Sequence[ColumnReading],
    decimal: str | None = None,
    levels: Mapping[str, Collection[str]] = NO_LEVELS,
) -> tuple[ColumnFix, ...]:
    """What reads the columns of another file as these were read.

    Args:
        decimal: the decimal mark that the caller gives for the other file; it goes before theirs.
        levels: the known levels of categories. None of these is a word for a missing value.
    """
    return tuple(
        _fix_like(_with_decimal(one, decimal), levels.get(one.name, ())) for one in readings
    )


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


def _with_decimal(reading: ColumnReading, mark: str | None) -> ColumnReading:
    if mark is None or reading.type != "number" or reading.format is None:
        return reading  # a plain number's mark is found out, and the option tells it
    try:
        format_ = NumberFormat.parse(reading.format)
    except ValueError:  # of an imported model; reading the column says what is wrong
        return reading
    return replace(reading, format=str(format_.with_decimal(mark)))


def _fix_like(reading: ColumnReading, known: Collection[str]) -> ColumnFix:
    type_: Any = reading.type if reading.type in get_args(StoredType) else None
    words = {word: word for word in CLEAR if word in known} if type_ == "category" else {}
    return ColumnFix(
        name=reading.name,
        type=type_,
        format=reading.format,
        missing=reading.missing or None,
        use=reading.use,
        levels={**words, **reading.levels} or None,
    )
