"""Answers of a service on the device beside its predictor's own rate."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import torch

from benchmarks.gpu.passes import loaded
from benchmarks.ratios.engine import repeated
from benchmarks.ratios.measurement import Pair, Run
from benchmarks.ratios.plain import SAMPLES
from benchmarks.ratios.service import served
from benchmarks.replica import publish, serving
from benchmarks.shapes import Shape
from models.prediction.options import PredictOptions

NETWORKS = ("13-50-50-2", "784-1200-1200-10")
CLIENTS = (1, 64)


@contextmanager
def service(device: torch.device) -> Iterator[dict[str, Pair]]:
    """Seconds per row of one row a request; of the predictor, of batches of as many as clients.

    `credence serve` takes the device that is there, as `CREDENCE_DEVICE` auto says.
    """
    with serving("serve") as server:
        for network in NETWORKS:
            publish(server.port, network, Shape.parse(network))
        yield {
            f"{clients} clients, {network}": Pair(
                partial(served, server.port, network, clients), _alone(network, device, clients), 5
            )
            for network in NETWORKS
            for clients in CLIENTS
        }


def _alone(network: str, device: torch.device, rows: int) -> Run:
    model, options = loaded(network, device), PredictOptions(samples=SAMPLES)
    x = torch.randn(rows, Shape.parse(network).inputs).to(device)
    batch = repeated(lambda: model.predict_rows(x, options))
    return lambda: batch() / rows
