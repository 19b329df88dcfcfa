"""A table without the rows that equal an earlier one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from core.datasets.columns.place import Column
from core.datasets.columns.repeats import repeated_rows
from core.datasets.files.source import Lines
from core.datasets.findings.duplicates import repeats_left_out
from core.datasets.findings.finding import MAX_EXAMPLES, Finding
from core.datasets.understanding.understood import Understood


@dataclass(frozen=True)
class UniqueRows:
    """The columns of the rows that stay, with their lines in the file.

    Args:
        left_out: the number of rows that do not stay.
        findings: which they are.
    """

    columns: Sequence[Understood]
    lines: Lines
    left_out: int = 0
    findings: tuple[Finding, ...] = ()


def without_repeats(
    columns: Sequence[Understood], lines: Lines, keep: Callable[[Column], Column]
) -> UniqueRows:
    """The columns without rows that equal an earlier one in every column, used or not.

    Args:
        keep: what puts a new column where it stays.
    """
    repeated = repeated_rows([one.column for one in columns])
    if not len(repeated):
        return UniqueRows(columns, lines)
    kept = np.setdiff1d(np.arange(len(columns[0].column)), repeated)
    places = pa.array(kept)
    return UniqueRows(
        [one.with_reading(keep(one.column.take(places))) for one in columns],
        lambda rows: lines([int(kept[row]) for row in rows]),
        len(repeated),
        (repeats_left_out(lines(repeated[:MAX_EXAMPLES].tolist()), len(repeated)),),
    )
