"""From a file, or columns of JSON, to a table that can be stored, with what was found out."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from core.datasets.files.opening import Opened
from core.datasets.files.options import Reading, ReadingOptions
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding
from core.datasets.findings.table_checks import check_table
from core.datasets.profiles import profile
from core.datasets.understanding.columns import Understood, understand
from core.datasets.understanding.fixes import ColumnFix
from models.features.columns import ColumnProfile, ColumnReading


@dataclass(frozen=True)
class Given:
    """What the caller says about a file and its columns."""

    options: ReadingOptions = field(default_factory=ReadingOptions)
    fixes: tuple[ColumnFix, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Ingested:
    """Canonical columns, and what was found out about the file and about each column."""

    table: pa.Table
    profiles: tuple[ColumnProfile, ...]
    reading: Reading
    readings: tuple[ColumnReading, ...]
    findings: tuple[Finding, ...]


def read_file(file: Opened, max_bytes: int, given: Given) -> Ingested:
    """Read a file and understand its columns.

    Raises:
        NotParseable, Invalid, TooLarge: see `core.datasets.formats`.
    """
    return ingest(
        file.read(max_bytes, given.options),
        given.fixes,
        is_text=file.format.name == "text",
    )


def ingest(source: Source, fixes: Sequence[ColumnFix] = (), *, is_text: bool = False) -> Ingested:
    """Understand the columns of a source, then check the table.

    Args:
        fixes: those that name no column are left out.
        is_text: whether its columns of strings are text whatever their values.
    """
    names = set(source.table.column_names)
    by_name = {fix.name: fix for fix in fixes if fix.name in names}
    lines, reading, findings = source.lines, source.reading, source.findings
    held = [source]
    del source  # its texts take as much memory as the file: `understand` frees them one by one
    columns = understand(held.pop(), by_name)
    pa.default_memory_pool().release_unused()  # the texts, before the checks take memory
    table = pa.table({one.reading.name: one.column for one in columns})
    profiles = [_profile(one, is_text=is_text) for one in columns]
    wanted = frozenset(name for name, fix in by_name.items() if fix.use)
    readings = [one.reading for one in columns]
    checked = check_table(table, profiles, readings, lines, wanted=wanted)
    texts = {one.name for one in profiles if one.type == "text"}
    unused = (checked.left_out | texts) - wanted
    return Ingested(
        table=table,
        profiles=tuple(_marked(one, unused) for one in profiles),
        reading=reading,
        readings=tuple(_typed(one, p, unused) for one, p in zip(columns, profiles, strict=True)),
        findings=(
            *findings,
            *(finding for one in columns for finding in one.findings),
            *checked.findings,
        ),
    )


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
