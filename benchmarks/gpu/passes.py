"""Recorded passes beside passes as they are, and how long batches of more rows take."""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from app.serving.growth import STEP, rows_worth_joining
from benchmarks.ratios.engine import repeated
from benchmarks.ratios.measurement import Pair
from benchmarks.ratios.plain import SAMPLES
from benchmarks.shapes import Shape, stored
from models.prediction.device.replays import Replays
from models.prediction.device.tapes import EagerTape, GraphTape
from models.prediction.engine import Engine
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

ROWS = (1, 8, 64)
SAMPLERS = ("monte_carlo", "moments")
_TAPE_BYTES = 2**30
_LONGEST_SECONDS = 0.1  # of a batch: twice what the service's may take
_RUNS = 5


@cache
def loaded(network: str, device: torch.device) -> TabularModel:
    """A model as the service loads it."""
    with tempfile.TemporaryDirectory() as folder:
        return stored(Shape.parse(network), Path(folder) / "model", str(device))


def passes(network: str, device: torch.device) -> dict[str, Pair]:
    """Pairs of recorded and plain passes, summaries included, by sampler and rows."""
    model = loaded(network, device)
    plain = replace(model.engine, compiles=False, replays=None)
    record = GraphTape.record if device.type == "cuda" else EagerTape.record
    recorded = replace(plain, replays=Replays(record, _TAPE_BYTES))
    return {
        f"recorded, {sampler}, {rows} × {network}": Pair(
            repeated(_summary(recorded, model, sampler, rows)),
            repeated(_summary(plain, model, sampler, rows)),
        )
        for sampler in SAMPLERS
        for rows in ROWS
    }


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


def _summary(
    engine: Engine, model: TabularModel, sampler: str, rows: int
) -> Callable[[], list[Any]]:
    """Compute a summary, whose arrays are on the host: the device has finished then."""
    x = _rows(model, rows)
    options = model.resolve(PredictOptions(samples=SAMPLES, sampler=sampler))  # type: ignore[arg-type]
    fitted = model.fitted(0.0)
    return lambda: list(engine.summaries(fitted, x, options, None, None))


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
