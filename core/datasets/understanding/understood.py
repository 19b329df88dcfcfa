"""What a column is understood as."""

from collections.abc import Callable
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

    def with_reading(self, column: "Column | None" = None, **changes: Any) -> "Understood":
        """The same with other values in the reading, and with another column if one is given."""
        column = self.column if column is None else column
        return replace(self, column=column, reading=replace(self.reading, **changes))

    def kept(self, keep: Callable[[Column], Column]) -> "Understood":
        """The same with the column where `keep` puts it."""
        return replace(self, column=keep(self.column))
