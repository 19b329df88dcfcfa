"""Rows of versions, and scores of rows, as the evaluation of labels has them."""

from typing import Any

from core.clock import now
from core.database.schema import VersionRow

NAMES = ("log_likelihood", "squared_error", "mae", "crps", "epistemic_share", "pit", "uncertainty")


def version_row(number: int, **description: Any) -> VersionRow:
    """A version of the model `square`."""
    return VersionRow(
        model="square",
        version=number,
        description=description,
        dataset="ds_1",
        job="job_1",
        artifact_key=f"models/square/{number}",
        created_at=now(),
    )
