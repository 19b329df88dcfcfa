"""The corpus: messy files, and what each of them must become, as expected.json says."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.datasets.files.options import DatasetOptions
from core.datasets.understanding import fixes
from core.datasets.understanding.fixes import ColumnFix

FILES = Path(__file__).parent / "files"
PLAIN = {  # what the files become whose mess is elsewhere
    "rows": 16,
    "types": {"size": "number", "colour": "category", "y": "number"},
    "values": {
        "size": [1.5, 2.75, 4.0, 5.25],
        "colour": ["red", "green", "green", "red"],
        "y": [0, 7, 5, 17],
    },
}


@dataclass(frozen=True)
class Said:
    """A finding that there must be.

    Args:
        line: one of its examples must be in this line of the file.
        fix: whether it must have a fix.
    """

    code: str
    column: str | None = None
    line: int | None = None
    fix: bool = False


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file of the corpus.

    Args:
        why: what is not to be seen from the rest.
        rows: their number.
        types: of all columns, in order.
        values: the first values of some columns, as JSON; a date without its midnight.
        each: the first values of every column of dates.
        missing: counts; 0 for columns that are not named.
        levels: all levels of some columns of categories.
        unused: columns that are no features by default.
        reading: part of how the file was read.
        findings: those that there must be. Others may only have the severity `info`.
        also: codes of warnings that may be there besides.
        quiet: codes that must not be there.
        refused: what the message must say if the file cannot be read, as a regular expression.
        target: the column to predict, if the findings are those for it.
    """

    file: str
    why: str = ""
    rows: int | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    each: Sequence[str] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unused: Sequence[str] = ()
    reading: Mapping[str, Any] = field(default_factory=dict)
    findings: Sequence[Said] = ()
    also: Sequence[str] = ()
    quiet: Sequence[str] = ()
    options: DatasetOptions = field(default_factory=DatasetOptions)
    fixes: tuple[ColumnFix, ...] = ()
    refused: str | None = None
    target: str | None = None


def cases() -> list[Case]:
    """All files, with what each must become."""
    expected = json.loads((Path(__file__).parent / "expected.json").read_text(encoding="utf-8"))
    return [_case(file, about) for file, about in expected.items()]


def _case(file: str, about: dict[str, Any]) -> Case:
    if about.pop("like", None) == "plain":
        about = PLAIN | about
    return Case(
        file=file,
        options=DatasetOptions(**about.pop("options", {})),
        fixes=fixes.from_json(about.pop("fixes", [])),
        findings=[Said(**one) for one in about.pop("findings", [])],
        **about,
    )
