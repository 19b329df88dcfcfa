"""The predictor in every server: the stored artifact, one thread, 100 samples."""

import os
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from models.artifact.files import read_model
from models.prediction.options import PredictOptions

SAMPLES = 100
MAX_BATCH = 32  # rows; for the servers that batch
BATCH_SECONDS = 0.001  # that they wait for more; longer would cost a single client that much
ARTIFACT = "BENCHMARK_ARTIFACT"  # environment variable: where the model is


class Predictor:
    """`TabularModel.predict`, returning the same arrays as Credence's response."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self._model = read_model(Path(os.environ[ARTIFACT]))
        self._options = PredictOptions(samples=SAMPLES)

    def predict(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Rows [B, inputs] → arrays with B rows."""
        torch.set_num_threads(1)  # OpenMP keeps this per calling thread
        started = perf_counter()
        answer = self._model.predict({"x": rows}, self._options)
        milliseconds = 1000 * (perf_counter() - started)
        entropy = answer.entropy or {}
        return {
            "mean": answer.mean,
            **{f"{name}_variance": values for name, values in answer.variance.items()},
            **{f"{name}_entropy": values for name, values in entropy.items()},
            "compute_ms": np.full(len(rows), milliseconds),
        }


def split(answer: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """One plain object per row, for servers whose batches are lists."""
    lists = {name: values.tolist() for name, values in answer.items()}
    rows = len(answer["mean"])
    return [{name: values[row] for name, values in lists.items()} for row in range(rows)]
