"""Steps of Bayes by Backprop beside those of a deterministic network, in the same loop."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.ratios.engine import one_thread
from benchmarks.ratios.measurement import Pair
from benchmarks.shapes import Shape
from benchmarks.training import BATCH, DETERMINISTIC, Problem, contenders, epoch, generated
from core.process.freed_memory import keep_freed_memory

_STEPS = {"784-400-400-10": 10, "13-50-50-2": 50}
_METHODS = {"local": "bbb local, auto", "weight": "bbb weight, auto"}


@contextmanager
def steps() -> Iterator[dict[str, Pair]]:
    """One pair per network and estimator, with the worker's way to handle freed memory."""
    keep_freed_memory()
    with one_thread():
        yield {
            f"train {network}, {estimator}": _pair(Shape.parse(network), method, count)
            for network, count in _STEPS.items()
            for estimator, method in _METHODS.items()
        }


def _pair(shape: Shape, method: str, count: int) -> Pair:
    problem, configs = Problem(shape, generated(shape, count * BATCH)), contenders()
    ours, reference = (
        partial(epoch, problem, configs[name], time.perf_counter)
        for name in (method, DETERMINISTIC)
    )
    return Pair(ours, reference, rounds=9)
