"""Credence: `TabularModel.predict` of a stored artifact, including encoding."""

import sys
import tempfile
from itertools import count
from pathlib import Path

from torch import Tensor

from benchmarks.peers.child import Predict, serve
from benchmarks.shapes import INPUT, Shape, stored
from models.prediction.options import PredictOptions


def build(widths: list[int]) -> Predict:
    """Use the version's default seed, or with the argument `new` another one per call."""
    with tempfile.TemporaryDirectory() as directory:
        model = stored(Shape(widths[0], tuple(widths[1:-1]), widths[-1]), Path(directory))
    seeds = count()
    is_new = sys.argv[2] == "new"

    def predict(x: Tensor, num_samples: int) -> object:
        seed = next(seeds) if is_new else None
        options = PredictOptions(samples=num_samples, seed=seed, intervals=())
        return model.predict({INPUT: x.numpy()}, options)

    return predict


if __name__ == "__main__":
    serve("credence", build)
