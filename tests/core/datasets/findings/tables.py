"""Tables and their findings, for the tests of this folder."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from core.clock import now
from core.datasets.columns.conversion import to_numpy
from core.datasets.dataset import Dataset
from core.datasets.files.ingest import Ingested, ingest
from core.datasets.files.source import Source
from core.datasets.findings.finding import Finding
from core.datasets.findings.target_checks import check_target
from models.features.columns import Columns


def ingested(columns: Mapping[str, Any] | pa.Table) -> Ingested:
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    return ingest(Source(table=table))


def found(columns: Mapping[str, Any] | pa.Table, code: str) -> Sequence[Finding]:
    """The findings with a code."""
    return [finding for finding in ingested(columns).findings if finding.code == code]


def columns_with(columns: Mapping[str, Any] | pa.Table, code: str) -> Sequence[str | None]:
    return [finding.column for finding in found(columns, code)]


def target_findings(columns: Mapping[str, Any] | pa.Table, target: str) -> Sequence[Finding]:
    """The findings on a target."""
    got = ingested(columns)
    types = {profile.name: profile.type for profile in got.profiles}

    def load(names: Sequence[str], rows: slice = slice(None)) -> Columns:
        table = got.table.select(list(names))[rows]
        return {name: np.array(to_numpy(table.column(name), types[name])) for name in names}

    dataset = Dataset(
        id="ds_1", owner="", name="table", format="csv", rows=got.table.num_rows,
        columns=got.profiles, bytes=0, sha256="", created_at=now(), findings=got.findings,
    )  # fmt: skip
    return check_target(dataset, target, load)
