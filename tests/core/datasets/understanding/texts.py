"""One column of texts, as a text file gives it, read."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from core.datasets.columns.conversion import to_json
from core.datasets.files.ingest import Ingested, ingest
from core.datasets.files.options import Reading
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding
from core.datasets.understanding.fixes import ColumnFix

OF_TABLE = {"few_rows", "duplicate_rows", "constant", "identifier", "numeric_code", "sentinel"}


def read(
    texts: Sequence[str | None], *, typed: bool = False, decimal: str | None = None, **fix: Any
) -> Ingested:
    """The column `x` of these texts. Line 1 is the header, so that row 0 stands in line 2."""
    source = Source(
        table=pa.table({"x": pa.array(texts, pa.string())}),
        typed=typed,
        reading=Reading(decimal=decimal),  # type: ignore[arg-type]
        lines=lambda rows: [row + 2 for row in rows],
    )
    return ingest(source, [ColumnFix(name="x", **fix)] if fix else [])


def values(found: Ingested) -> list[Any]:
    """Its values as JSON."""
    return [row["x"] for row in to_json(found.table)]


def said(found: Ingested) -> list[Finding]:
    """What is said about how the column is read."""
    return [finding for finding in found.findings if finding.code not in OF_TABLE]


def fixed(texts: Sequence[str | None], finding: Finding) -> Ingested:
    """The column after the fix of a finding."""
    assert finding.fix is not None
    (change,) = finding.fix["columns"]
    return read(texts, **{name: value for name, value in change.items() if name != "name"})
