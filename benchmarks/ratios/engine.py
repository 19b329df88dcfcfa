"""The engine beside plain sampling: 100 samples on one thread."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from benchmarks.ratios.measurement import Pair, Run
from benchmarks.ratios.plain import SAMPLES, PlainSampling
from benchmarks.shapes import Shape, build
from models.config import LikelihoodConfig, MLPConfig, ModelConfig, PartConfig, TrainingConfig
from models.features.columns import ColumnProfile
from models.prediction.compiled.compiler import compiler
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

CELLS = (
    ("784-1200-1200-10", 32),
    ("784-400-400-10", 1),
    ("13-50-50-2", 1),
    ("13-50-50-2", 256),
)
_SMALL = 128  # units
_BLOCK_SECONDS = 0.02  # a run repeats its work for so long: single short calls vary more
MEMBER = "8-64-64-3"  # a network like the members of `ordinary`


@contextmanager
def networks() -> Iterator[dict[str, Pair]]:
    """Mean and variance of encoded rows, without intervals."""
    compiler().wait()
    with one_thread():
        yield {f"predict {rows} × {network}": _network(network, rows) for network, rows in CELLS}


def _network(network: str, rows: int) -> Pair:
    shape = Shape.parse(network)
    model, plain, x = loaded(shape), PlainSampling.build(shape), torch.randn(rows, shape.inputs)
    options = PredictOptions(samples=SAMPLES, intervals=())
    ours, reference = partial(model.predict_rows, x, options), partial(plain.moments, x)
    return Pair(repeated(ours), repeated(reference))


def loaded(shape: Shape) -> TabularModel:
    """As the service loads a model; of a large one without a choice of products.

    The format of these depends on the processor, and the ratio with it.
    """
    return replace(build(shape), tuned=max(shape.hidden) <= _SMALL)


@contextmanager
def tables() -> Iterator[dict[str, Pair]]:
    """A whole answer for an ordinary table: encoding, members, shapes, intervals, reasons."""
    compiler().wait()
    with one_thread():
        model = replace(ordinary(), tuned=True)
        yield {f"predict {rows} × ordinary table": _table(model, rows) for rows in (1, 32)}


def _table(model: TabularModel, rows: int) -> Pair:
    columns, options = inputs(rows), PredictOptions(samples=SAMPLES)
    plain, x = PlainSampling.build(Shape.parse(MEMBER)), torch.randn(rows, len(columns))
    ours, reference = partial(model.predict, columns, options), partial(plain.moments, x)
    return Pair(repeated(ours), repeated(reference))


def ordinary(rows: int = 400) -> TabularModel:
    """What the recipe often chooses for a table, trained for two epochs on generated rows."""
    columns, noise = inputs(rows), np.random.default_rng(1).normal(size=rows)
    columns["y"] = np.exp(columns["x0"] + 0.3 * columns["x1"] + 0.2 * noise)
    part = PartConfig(members=4, hidden=(64, 64), inputs="piecewise", kl_weight=0.1)
    config = ModelConfig(
        target="y",
        task="regression",
        likelihood=LikelihoodConfig(kind="mixture", components=3, scale="log"),
        network=MLPConfig(parts=(part,)),
        training=TrainingConfig(epochs=2),
        pruning=(),
    )
    types = dict.fromkeys(columns, "number")
    profiles = [ColumnProfile(name=name, type="number") for name in types]
    return train(columns, types, resolve(config, profiles, rows))


def inputs(rows: int) -> dict[str, np.ndarray]:
    """Eight columns of normals."""
    random = np.random.default_rng(0)
    return {f"x{i}": random.normal(size=rows) for i in range(8)}


def repeated(work: Callable[[], object]) -> Run:
    """Seconds per call, over as many calls as fill a block."""

    def run() -> float:
        started, calls = time.perf_counter(), 0
        with torch.inference_mode():
            while (seconds := time.perf_counter() - started) < _BLOCK_SECONDS or not calls:
                work()
                calls += 1
        return seconds / calls

    return run


@contextmanager
def one_thread() -> Iterator[None]:
    """All torch operations of the block on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
