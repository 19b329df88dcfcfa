"""The checks of a whole table: identifiers, constants, duplicates, sentinels, postal codes."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from core.datasets.files.source import Lines
from core.datasets.findings.finding import Finding
from models.features.columns import ColumnProfile, ColumnReading


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
) -> Checked:
    """What the owner of a table should know before a training.

    Args:
        table: canonical columns.
        readings: how each column was read, in the same order.
    """
    return Checked()
