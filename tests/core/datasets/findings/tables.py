"""Tables and their findings, for the tests of this folder."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from core.datasets.files.ingest import Ingested, ingest
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding


def ingested(columns: Mapping[str, Any] | pa.Table) -> Ingested:
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    return ingest(Source(table=table))


def found(columns: Mapping[str, Any] | pa.Table, code: str) -> Sequence[Finding]:
    """The findings with a code."""
    return [finding for finding in ingested(columns).findings if finding.code == code]


def columns_with(columns: Mapping[str, Any] | pa.Table, code: str) -> Sequence[str | None]:
    return [finding.column for finding in found(columns, code)]
