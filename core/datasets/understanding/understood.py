"""What a column is understood as."""

from dataclasses import dataclass, replace
from typing import Any

from core.datasets.columns import Column
from core.datasets.findings.finding import Finding
from models.features.columns import ColumnReading


@dataclass(frozen=True)
class Understood:
    """A canonical column, how it was read, and what its owner should know about that."""

    column: Column
    reading: ColumnReading
    findings: tuple[Finding, ...] = ()

    def with_reading(self, **changes: Any) -> "Understood":
        """The same with other values in the reading."""
        return replace(self, reading=replace(self.reading, **changes))
