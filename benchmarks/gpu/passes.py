"""How long batches of more rows take."""

import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import torch

from app.serving.growth import STEP, rows_worth_joining
from benchmarks.ratios.plain import SAMPLES
from benchmarks.shapes import Shape, stored
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

_LONGEST_SECONDS = 0.1  # of a batch: twice what the service's may take
_RUNS = 5


@cache
def loaded(network: str, device: torch.device) -> TabularModel:
    """A model as the service loads it."""
    with tempfile.TemporaryDirectory() as folder:
        return stored(Shape.parse(network), Path(folder) / "model", str(device))


def growth(network: str, device: torch.device) -> dict[str, Any]:
    """Seconds by rows, up to a batch of 0.1 s, and the rows that are worth joining."""
    model = loaded(network, device)
    rows, seconds = 1, {1: _seconds(model, 1)}
    while STEP * seconds[rows] < _LONGEST_SECONDS:
        rows *= STEP
        seconds[rows] = _seconds(model, rows)
    if len(seconds) == 1:
        seconds[STEP] = _seconds(model, STEP)
    return {"seconds": seconds, "worth_joining": rows_worth_joining(seconds)}


def _seconds(model: TabularModel, rows: int) -> float:
    """The shortest of some predictions."""
    x, options, found = _rows(model, rows), PredictOptions(samples=SAMPLES), []
    for _ in range(_RUNS):
        started = time.perf_counter()
        model.predict_rows(x, options)
        found.append(time.perf_counter() - started)
    return min(found)


def _rows(model: TabularModel, rows: int) -> torch.Tensor:
    return torch.randn(rows, model.blank(1).shape[1]).to(model.device)
