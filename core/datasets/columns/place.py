"""The place of a column, for error messages, and the check of column names."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from core.exceptions import Invalid
from core.names import name_problem

Column: TypeAlias = "pa.ChunkedArray[Any]"  # quoted: it is generic only in pyarrow's stubs

MAX_COLUMNS = 20_000  # each takes a millisecond to be understood, and 250 bytes of the row
MAX_PROBLEMS = 20  # in one error


@dataclass(frozen=True)
class Place:
    """A column's name, and the JSON pointer of the object that holds it."""

    name: str
    pointer: str = "/columns"

    def invalid(self, message: str, row: int | None = None) -> Invalid:
        """The exception for an error in this column; rows count from 0."""
        path = f"{self.pointer}/{escape(self.name)}"
        if row is None:
            return Invalid([(path, f"column {self.name!r} {message}")])
        return Invalid(
            [(f"{path}/{row}", f"column {self.name!r}, row {row} (counting from 0), {message}")]
        )


def escape(name: str) -> str:
    """A name as one part of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def check_count(num_columns: int, pointer: str = "/columns") -> None:
    """Raise `Invalid` for too many columns, before anything is done for each."""
    if num_columns > MAX_COLUMNS:
        raise Invalid([(pointer, f"there are {num_columns} columns: give at most {MAX_COLUMNS}")])


def check_names(names: list[str], pointer: str = "/columns") -> None:
    """Raise `Invalid` for names that are empty, not printable or not unique."""
    if not names:
        raise Invalid([(pointer, "there are no columns: give at least one")])
    check_count(len(names), pointer)
    problems: list[tuple[str, str]] = []
    seen: set[str] = set()
    for position, name in enumerate(names):
        if problem := name_problem(name):
            problems.append((f"{pointer}/{position}", f"the name of column {position} {problem}"))
        elif name in seen:
            problems.append((f"{pointer}/{escape(name)}", f"the name {name!r} occurs twice"))
        seen.add(name)
    if problems:
        raise Invalid(problems[:MAX_PROBLEMS])
