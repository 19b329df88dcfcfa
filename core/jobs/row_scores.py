"""The scores of each held-out row, by which the methods of a comparison are compared in pairs.

A file per method, of at most some 300 kB, beside the results of offline predictions.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float
from safetensors import safe_open
from safetensors.numpy import save_file

from core.exceptions import NotFound
from core.jobs.jobs import Claim, Job
from core.jobs.results import parts_key
from core.storage import ArtifactStore

_SCORES, _WEIGHTS, _ROWS = "log_likelihood", "weight", "rows"


@dataclass(frozen=True)
class RowScores:
    """The log likelihood of some held-out rows.

    Args:
        rows: identifies the rows and their order: scores with the same text are pairs.
        weights: of the rows; None if all are equal.
    """

    rows: str
    log_likelihood: Float[np.ndarray, "rows"]
    weights: Float[np.ndarray, "rows"] | None = None


class RowScoreFiles:
    """The files in the store. The name of a file has the attempt that wrote it."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def publish(self, claim: Claim, parent: str, scores: RowScores, scratch: Path) -> None:
        """Store the scores of a training, and delete those of its earlier attempts.

        Args:
            parent: the comparison.
            scratch: a folder for the file before it is published.
        """
        for attempt in range(1, claim.attempt + 1):
            self._store.delete(_key(parent, claim.job_id, attempt))
        arrays = {_SCORES: scores.log_likelihood}
        if scores.weights is not None:
            arrays[_WEIGHTS] = scores.weights
        path = scratch / "row_scores.safetensors"
        save_file(arrays, path, metadata={_ROWS: scores.rows})
        self._store.put_file(_key(parent, claim.job_id, claim.attempt), path)

    def read(self, training: Job) -> RowScores | None:
        """The scores of a training; None if it has none, as in older releases and for texts."""
        if training.parent is None:
            return None
        try:
            path = self._store.local_path(_key(training.parent, training.id, training.attempt))
        except NotFound:
            return None
        with safe_open(path, framework="numpy") as file:
            names = set(file.keys())
            return RowScores(
                file.metadata()[_ROWS],
                file.get_tensor(_SCORES),
                file.get_tensor(_WEIGHTS) if _WEIGHTS in names else None,
            )


def _key(parent: str, job_id: str, attempt: int) -> str:
    return f"{parts_key(parent)}/{file_name(job_id, attempt)}"


def file_name(job_id: str, attempt: int) -> str:
    """The name of the file of a training's attempt."""
    return f"{job_id}-{attempt}.safetensors"
