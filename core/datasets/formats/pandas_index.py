"""The index of a frame of pandas, which it writes as a column without a name of its own."""

import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from core.datasets.columns import Column
from core.datasets.files.options import ReadingOptions
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding

LEVEL = re.compile(r"__index_level_\d+__")


def without_index(source: Source, options: ReadingOptions) -> Source:
    """The source without an index that only counts or names the rows.

    An index of times, or one that repeats, tells something: it stays a column. With `index` false
    everything stays; with `index` true the first column goes if there is no such index.
    """
    names = source.table.column_names
    levels = [name for name in names if LEVEL.fullmatch(name)]
    if options.index is None:
        dropped = [name for name in levels if _only_names(source.table.column(name))]
    else:
        dropped = (levels or names[:1]) if options.index else []
    if not dropped or len(dropped) == len(names):
        return source
    shown = ", ".join(map(repr, dropped))
    said = Finding(
        code="index",
        severity="info",
        message=f"the index {shown} was left out: set index=false to keep it",
    )
    return replace(
        source,
        table=source.table.drop_columns(dropped),
        reading=replace(source.reading, index=True),
        findings=(*source.findings, said),
    )


def _only_names(column: Column) -> bool:
    if pa.types.is_temporal(column.type) or pa.types.is_floating(column.type):
        return False
    try:
        return not column.null_count and pc.count_distinct(column).as_py() == len(column)
    except pa.ArrowNotImplementedError:
        return False
