"""Requests to `credence serve` beside the same predictions in this process, on one thread."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.http.connection import Client
from benchmarks.http.generator import closed_loop
from benchmarks.ratios.engine import one_thread, repeated
from benchmarks.ratios.measurement import Pair, Run
from benchmarks.ratios.plain import SAMPLES
from benchmarks.replica import publish, requests_for, serving
from benchmarks.shapes import INPUT, Shape, build
from models.prediction.compiled.compiler import compiler
from models.prediction.options import PredictOptions

_NETWORKS = ("784-400-400-10", "13-50-50-2")
_SECONDS = 0.7  # of each run
_ROUNDS = 5
_BATCH = 32  # rows that the predictor computes at once beside many clients


@contextmanager
def requests() -> Iterator[dict[str, Pair]]:
    """One client beside single rows, and 64 clients beside batches: seconds per row."""
    compiler().wait()  # so that the server reads the kernels from the cache
    with serving("serve") as server, one_thread():
        for network in _NETWORKS:
            publish(server.port, network, Shape.parse(network))
        yield {
            f"{name}, {network}": Pair(
                partial(served, server.port, network, clients), _alone(network, rows), _ROUNDS
            )
            for network in _NETWORKS
            for name, clients, rows in (("one client", 1, 1), ("64 clients", 64, _BATCH))
        }


def served(port: int, network: str, clients: int) -> float:
    """Seconds per answer of one row."""
    return asyncio.run(_load(port, requests_for(network, Shape.parse(network), 1), clients))


async def _load(port: int, payloads: list[bytes], clients: int) -> float:
    client = Client(port)
    try:
        summary = await closed_loop(client, payloads, clients, _SECONDS)
    finally:
        await client.close()
    if summary.failures:
        raise RuntimeError(f"the service did not answer all requests: {summary.failures}")
    return 1 / summary.throughput


def _alone(network: str, rows: int) -> Run:
    """Seconds per row of the same predictor, without a service."""
    shape = Shape.parse(network)
    model, options = replace(build(shape), tuned=True), PredictOptions(samples=SAMPLES)
    x = np.random.default_rng(1).normal(size=(rows, shape.inputs))
    batch = repeated(lambda: model.predict({INPUT: x}, options))
    return lambda: batch() / rows
