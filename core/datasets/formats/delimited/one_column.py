"""Files that are read as one column, though their lines look like several."""

import re
from collections.abc import Iterator

import pyarrow as pa

from core.datasets.findings.finding import Finding
from core.datasets.formats.delimited.dialects import NONE
from core.datasets.formats.delimited.head import Head

_SAMPLE = 100  # rows
_MOST = 0.9
_SEVERAL = re.compile(r"\S {2,}\S|\S ?[│┆║¦] ?\S")


def doubt(table: pa.Table, head: Head) -> Iterator[Finding]:
    """A finding for a table of fixed widths, or one drawn with lines."""
    if head.dialect.delimiter != NONE:
        return
    some = [text for text in table.column(0).slice(0, _SAMPLE).to_pylist() if text]
    if some and sum(bool(_SEVERAL.search(text)) for text in some) >= _MOST * len(some):
        yield Finding(
            code="one_column",
            severity="error",
            message="the file was read as one column, though its lines look like several: "
            "delimiter= says what separates cells; tables of fixed widths are read as frames: "
            "credence.Client().upload(pandas.read_fwf(file), name)",
            rows=table.num_rows,
        )
