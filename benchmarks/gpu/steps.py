"""Training steps in mixed precision beside float32."""

import time
from dataclasses import replace
from functools import partial

import torch

from benchmarks.ratios.measurement import Pair
from benchmarks.shapes import Shape
from benchmarks.training import Problem, build_trainer, contenders, generated
from models.inference.precision import Products

BATCHES = (128, 2048)  # rows of a step
_METHODS = {"local": "bbb local, auto", "weight": "bbb weight, auto", "map": "mle"}
_STEPS, _QUICK_STEPS = 50, 4


def steps(network: str, device: torch.device, *, quick: bool) -> dict[str, Pair]:
    """Pairs of epochs, by method and rows of a step."""
    count = _QUICK_STEPS if quick else _STEPS
    return {
        f"bfloat16, {name}, {batch} rows, {network}": _pair(network, device, method, batch, count)
        for name, method in _METHODS.items()
        for batch in (BATCHES[:1] if quick else BATCHES)
    }


def _pair(network: str, device: torch.device, method: str, batch: int, count: int) -> Pair:
    shape = Shape.parse(network)
    problem = Problem(shape, generated(shape, count * batch).to(str(device)))
    mixed, exact = (
        partial(_epoch, problem, method, Products(device.type, rounded=rounded), batch)
        for rounded in (True, False)
    )
    return Pair(mixed, exact, rounds=5)


def _epoch(problem: Problem, method: str, products: Products, batch: int) -> float:
    """Seconds of an epoch, which reads each step's loss: the device has finished then."""
    trainer = build_trainer(problem, contenders()[method], products)
    trainer.config = replace(trainer.config, batch_size=batch)
    started = time.perf_counter()
    trainer.run()
    return time.perf_counter() - started
