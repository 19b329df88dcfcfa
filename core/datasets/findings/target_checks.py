"""The checks of a data set for one target: leaks, missing targets, the task."""

from collections.abc import Callable, Sequence

from core.datasets.findings.finding import Finding
from models.features.columns import ColumnProfile, Columns

Load = Callable[[Sequence[str]], Columns]


def check_target(
    profiles: Sequence[ColumnProfile], num_rows: int, target: str, load: Load
) -> tuple[Finding, ...]:
    """What the owner should know before a training on this target.

    Args:
        load: reads columns by name.
    """
    return ()
