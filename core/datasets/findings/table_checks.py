"""The checks of a whole table: identifiers, constants, duplicates, sentinels, extremes, codes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from core.datasets.files.source import Lines
from core.datasets.findings.checked_column import CheckedColumn
from core.datasets.findings.codes import find_free_text, find_many_levels, find_postal_codes
from core.datasets.findings.constants import find_constants
from core.datasets.findings.duplicates import (
    find_duplicate_columns,
    find_duplicate_rows,
    repeated_rows,
)
from core.datasets.findings.extremes import find_extremes
from core.datasets.findings.finding import Code, Finding
from core.datasets.findings.identifiers import (
    MIN_ROWS,
    find_identifiers,
    find_numeric_keys,
    find_repeated_codes,
)
from core.datasets.findings.misspelt import find_misspelt
from core.datasets.findings.number_dates import find_number_dates
from core.datasets.findings.sentinels import find_sentinels
from core.datasets.findings.shape import find_shape
from models.features.columns import ColumnProfile, ColumnReading
from models.messages import counted

MAX_PER_CODE = 20  # findings; the rest is said in one
MOST_COPIES = 0.2  # of the rows
MAX_FIXED = 1_000  # columns of a fix


@dataclass(frozen=True)
class Checked:
    """The findings, and the columns that are no features unless the owner wants them."""

    findings: tuple[Finding, ...] = ()
    left_out: frozenset[str] = frozenset()


def check_table(
    table: pa.Table,
    profiles: Sequence[ColumnProfile],
    readings: Sequence[ColumnReading],
    lines: Lines,
    *,
    wanted: frozenset[str] = frozenset(),
) -> Checked:
    """What the owner of a table should know before a training.

    Args:
        table: canonical columns.
        readings: how each column was read, in the same order.
        wanted: columns that the owner wants as features, whatever they look like.
    """
    columns = [
        CheckedColumn(table.column(place), profile, lines, place)
        for place, profile in enumerate(profiles)
    ]
    shape = list(find_shape(table.num_rows, table.num_columns))
    if table.num_rows < MIN_ROWS:
        return Checked(tuple(shape))
    repeated = repeated_rows(columns)
    if len(repeated) <= MOST_COPIES * table.num_rows:
        columns = [replace(one, copies=len(repeated)) for one in columns]
    used = [
        one for one, reading in zip(columns, readings, strict=True) if reading.use
    ]  # of others nothing matters: the owner left them out
    doubted = [one for one in used if one.name not in wanted]
    identifiers = list(find_identifiers(doubted))
    named = {finding.column for finding in identifiers}
    texts = list(find_free_text([one for one in doubted if one.name not in named]))
    left_out = frozenset(str(finding.column) for finding in (*identifiers, *texts))
    rest = [one for one in used if one.name not in left_out]
    doubted = [one for one in rest if one.name not in wanted]
    dates = list(find_number_dates(rest))
    counted_times = {finding.column for finding in dates}
    rest = [one for one in rest if one.name not in counted_times]
    sentinels = list(find_sentinels(rest))
    coded = {finding.column for finding in sentinels}
    found = [
        *identifiers,
        *dates,
        *find_constants(doubted),
        *find_duplicate_columns(doubted),
        *sentinels,
        *find_extremes([one for one in rest if one.name not in coded]),
        *find_postal_codes(rest),
        *find_numeric_keys(doubted),
        *find_many_levels(doubted),
        *find_repeated_codes(doubted),
        *find_misspelt(rest),
        *_of_several(texts, len(columns)),
        *find_duplicate_rows(columns, repeated),
    ]
    return Checked((*_shortened(found), *shape), left_out)


def _of_several(findings: Iterable[Finding], num_columns: int) -> Iterable[Finding]:
    """None for a file of one column: if that is text, a language model learns it."""
    return findings if num_columns > 1 else ()


def _shortened(findings: Sequence[Finding]) -> list[Finding]:
    """The findings, with one for the rest where a code has many."""
    by_code: dict[Code, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_code[finding.code].append(finding)
    shown = []
    for some in by_code.values():
        shown += some[:MAX_PER_CODE]
        if rest := some[MAX_PER_CODE:]:
            shown.append(_summary(rest))
    return shown


def _summary(rest: Sequence[Finding]) -> Finding:
    first = rest[0]
    names = ", ".join(repr(finding.column) for finding in rest[:MAX_PER_CODE])
    fixes = [column for one in rest if one.fix for column in one.fix.get("columns", ())]
    return Finding(
        code=first.code,
        severity=first.severity,
        message=f"the same holds for {counted(len(rest), 'more column')}: {names}"
        + (" …" if len(rest) > MAX_PER_CODE else ""),
        rows=max(finding.rows for finding in rest),
        fix={"columns": fixes[:MAX_FIXED]} if fixes else None,
    )
