"""From a file, or columns of JSON, to a table that can be stored, with what was found out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from core.datasets.files.opening import Opened
from core.datasets.files.options import DatasetOptions, Reading
from core.datasets.files.source import Lines, Source, row_numbers
from core.datasets.files.unique_rows import without_repeats
from core.datasets.findings.finding import Finding, Severity
from core.datasets.findings.table_checks import check_table
from core.datasets.profiles import profile, within
from core.datasets.understanding.columns import Understood, understand
from core.datasets.understanding.fixes import ColumnFix
from models.features.columns import ColumnProfile, ColumnReading

MAX_FINDINGS = 1_000  # of one file: the database's row and every response hold them
MAX_LEVEL_TEXT = 2**21  # characters of the levels of all columns, for the same reason
GRAVEST: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class Given:
    """What the caller says about a file and its columns."""

    options: DatasetOptions = field(default_factory=DatasetOptions)
    fixes: tuple[ColumnFix, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ingested:
    """Canonical columns, and what was found out about the file and about each column.

    Args:
        file: an Arrow file of the table, if there is one.
        first_line: the line of the first row in the file, if each row is one line; else None.
    """

    table: pa.Table
    profiles: tuple[ColumnProfile, ...]
    reading: Reading
    readings: tuple[ColumnReading, ...]
    findings: tuple[Finding, ...]
    file: Path | None = None
    first_line: int | None = None


def understood(file: Opened, source: Source, given: Given) -> Ingested:
    """Understand the columns of a file's source."""
    held = [source]
    del source
    return ingest(
        held.pop(),
        given.fixes,
        is_text=file.format.name == "text",
        unique_rows=bool(given.options.unique_rows),
    )


def ingest(
    source: Source,
    fixes: Sequence[ColumnFix] = (),
    *,
    is_text: bool = False,
    unique_rows: bool = False,
) -> Ingested:
    """Understand the columns of a source, then check the table.

    Args:
        fixes: those that name no column are left out.
        is_text: whether its columns of strings are text whatever their values.
        unique_rows: whether rows that equal an earlier one are left out.
    """
    names = set(source.table.column_names)
    by_name = {fix.name: fix for fix in fixes if fix.name in names}
    lines, reading, findings = source.lines, source.reading, source.findings
    keep = source.keep
    held = [source]
    del source  # its texts take as much memory as the file: `understand` frees them one by one
    columns: Sequence[Understood] = understand(held.pop(), by_name)
    pa.default_memory_pool().release_unused()  # the texts, before the checks take memory
    if unique_rows:
        found = without_repeats(columns, lines, keep)
        columns, lines, findings = found.columns, found.lines, (*findings, *found.findings)
        reading = replace(reading, repeated_rows=(reading.repeated_rows or 0) + found.left_out)
    table = pa.table({one.reading.name: one.column for one in columns})
    profiles = [_profile(one, is_text=is_text) for one in columns]
    wanted = frozenset(name for name, fix in by_name.items() if fix.use)
    readings = [one.reading for one in columns]
    checked = check_table(table, profiles, readings, lines, wanted=wanted)
    texts = {one.name for one in profiles if one.type == "text"}
    unused = (checked.left_out | texts) - wanted
    return Ingested(
        table=table,
        profiles=tuple(_marked(one, unused) for one in within(profiles, MAX_LEVEL_TEXT)),
        reading=reading,
        readings=tuple(_typed(one, p, unused) for one, p in zip(columns, profiles, strict=True)),
        findings=_gravest(
            (
                *findings,
                *(said for one in columns if one.reading.use for said in one.findings),
                *checked.findings,
            )
        ),
        first_line=_first_line(lines, table.num_rows),
    )


def _first_line(lines: Lines, rows: int) -> int | None:
    """The line of the first row if each row is one line; None for a file without lines."""
    if lines is row_numbers or rows == 0:
        return None
    first, last = lines([0, rows - 1])
    return first if last - first == rows - 1 else None


def _gravest(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings in their order; of more than `MAX_FINDINGS` the least grave are left out."""
    if len(findings) <= MAX_FINDINGS:
        return tuple(findings)
    numbered = sorted(enumerate(findings), key=lambda one: GRAVEST.index(one[1].severity))
    return tuple(finding for _, finding in sorted(numbered[:MAX_FINDINGS], key=lambda one: one[0]))


def _profile(one: Understood, *, is_text: bool) -> ColumnProfile:
    found = profile(
        one.reading.name,
        one.column,
        is_text=is_text or one.reading.type == "text",
        is_boolean=one.reading.type == "boolean",
    )
    return replace(found, use=one.reading.use)


def _marked(one: ColumnProfile, unused: frozenset[str]) -> ColumnProfile:
    return replace(one, use=False) if one.name in unused else one


def _typed(one: Understood, found: ColumnProfile, unused: frozenset[str]) -> ColumnReading:
    """The reading with the profile's type, which by the values may be `text`."""
    use = one.reading.use and found.name not in unused
    return replace(one.reading, type=found.type, use=use)
