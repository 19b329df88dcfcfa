"""The predictor of every server: the stored artifact, one thread, 100 samples."""

import os
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from models.artifact.files import read_model
from models.prediction.options import PredictOptions

SAMPLES = 100
MAX_BATCH = 32  # rows, for servers that batch
BATCH_SECONDS = 0.001  # they wait for more rows; a single client waits this long too
ARTIFACT = "BENCHMARK_ARTIFACT"  # environment variable with the artifact's directory


class Predictor:
    """Calls `TabularModel.predict` and returns the arrays of Credence's response."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self._model = read_model(Path(os.environ[ARTIFACT]))
        self._options = PredictOptions(samples=SAMPLES)

    def predict(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Rows [B, inputs] → arrays with B rows."""
        torch.set_num_threads(1)  # OpenMP keeps this per calling thread
        started = perf_counter()
        prediction = self._model.predict({"x": rows}, self._options)
        milliseconds = 1000 * (perf_counter() - started)
        entropy = prediction.entropy or {}
        return {
            "mean": prediction.mean,
            **{f"{name}_variance": values for name, values in prediction.variance.items()},
            **{f"{name}_entropy": values for name, values in entropy.items()},
            "compute_ms": np.full(len(rows), milliseconds),
        }


def split(prediction: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """One dictionary per row, for servers whose batches are lists."""
    lists = {name: values.tolist() for name, values in prediction.items()}
    rows = len(prediction["mean"])
    return [{name: values[row] for name, values in lists.items()} for row in range(rows)]
