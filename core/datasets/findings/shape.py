"""The number of rows and columns."""

from collections.abc import Iterator

from core.datasets.findings.finding import Finding
from models.messages import counted

_FEW = 50


def find_shape(num_rows: int, num_columns: int) -> Iterator[Finding]:
    """A finding for few rows, or for fewer rows than columns."""
    if num_rows < _FEW:
        yield Finding(
            code="few_rows",
            severity="info",
            message=f"the table has only {counted(num_rows, 'row')}: its models, and their "
            "scores on held-out rows, are uncertain",
            rows=num_rows,
        )
    if num_columns > num_rows:
        yield Finding(
            code="wide",
            severity="info",
            message=f"the table has more columns ({num_columns}) than rows ({num_rows}): some "
            "columns agree with any target by chance",
            rows=num_rows,
        )
