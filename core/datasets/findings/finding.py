"""A finding: something about a file or a column that its owner should know, and how to mend it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["info", "warning", "error"]
"""info: understood as most would mean it. warning: a guess. error: a training would go wrong."""

Code = Literal[
    "blanks",
    "case",
    "codes",
    "constant",
    "currency",
    "dates_ambiguous",
    "dates_as_numbers",
    "dates_compact",
    "dates_mixed",
    "dates_short_years",
    "duplicate_column",
    "duplicate_rows",
    "encoding",
    "extreme",
    "few_rows",
    "file_type",
    "formulas",
    "free_text",
    "header_missing",
    "identifier",
    "imbalanced",
    "index",
    "leak",
    "lines_left_out",
    "many_levels",
    "merged_cells",
    "missing_words",
    "misspelt",
    "mostly_boolean",
    "mostly_dates",
    "mostly_numeric",
    "names",
    "nearly_empty",
    "negative",
    "nested",
    "numeric_code",
    "one_column",
    "percent",
    "postal_code",
    "rare_classes",
    "repeated_code",
    "sentinel",
    "sheets",
    "target_missing",
    "target_type",
    "task",
    "thousands",
    "unit",
    "unread",
    "wide",
]
MAX_EXAMPLES = 5
MAX_VALUE_LENGTH = 100


@dataclass(frozen=True)
class Example:
    """A cell: its line in the file, counting from 1, and its text (at most 100 characters)."""

    line: int | None
    value: str


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about a column, or with `column` None about the file.

    Args:
        message: a sentence that names the thing and shows the value.
        rows: the number of rows that it concerns.
        fix: a body for `POST /datasets/{id}/columns` that mends or undoes it, if there is one.
    """

    code: Code
    severity: Severity
    message: str
    column: str | None = None
    rows: int = 0
    examples: tuple[Example, ...] = ()
    fix: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The finding as the data set's row in the database stores it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Finding":
        """The inverse of `to_json`."""
        examples = tuple(Example(**example) for example in data["examples"])
        return cls(**{**data, "examples": examples})


def fix_column(name: str, **changes: Any) -> Mapping[str, Any]:
    """The body of a fix for one column: `type`, `format`, `missing`, `use` or `levels`."""
    return {"columns": [{"name": name, **changes}]}


def fix_options(**changes: Any) -> Mapping[str, Any]:
    """The body of a fix that makes the data set from its file in another way."""
    return {"options": changes}


def examples_of(lines: Sequence[int | None], values: Sequence[str]) -> tuple[Example, ...]:
    """The first examples, with long values cut."""
    some = zip(lines, values, strict=True)
    return tuple(Example(line, value[:MAX_VALUE_LENGTH]) for line, value in some)[:MAX_EXAMPLES]
