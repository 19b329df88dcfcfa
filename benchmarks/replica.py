"""Throughput of one API replica over HTTP: rows per second by rows per request.

    python -m benchmarks.replica

16 clients in a closed loop, JSON, 100 samples, a 90 % interval, one compute thread; the generator
runs on the same machine. CPU is in busy cores of the API's process. Near 2 (the event loop and the
engine) the replica is full. `docs/scaling.md` uses these figures.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.http.artifact import wait_until_ready
from benchmarks.http.connection import Client as LeanClient
from benchmarks.http.connection import request_bytes
from benchmarks.http.generator import closed_loop
from benchmarks.http.load import Summary
from benchmarks.http.process import Server, free_ports, running
from benchmarks.shapes import Shape, columns
from credence.client import Client

NETWORKS = ("13-50-2", "13-50-50-2", "784-400-400-10")
ROWS = (1, 8, 32, 256)
CLIENTS = 16
SAMPLES = 100
DIFFERENT = 16  # requests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    with serving("serve") as server:
        cells = [
            cell for network in NETWORKS for cell in measure(server, network, arguments.seconds)
        ]
    results.save("replica", {"machine": results.machine(), "cells": cells})
    print(table(cells))


@contextmanager
def serving(command: str) -> Iterator[Server]:
    """`credence serve` or `credence api` with one compute thread and data of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder, (port,) = Path(name), free_ports(1)
        environment = {
            "CREDENCE_THREADS": "1",
            "CREDENCE_LOG_LEVEL": "warning",
            "CREDENCE_WORKER_METRICS_PORT": "0",
            "CREDENCE_DATA_DIR": str(folder / "data"),
        }
        run = [sys.executable, "-m", "credence", command, "--port", str(port)]
        with running(run, environment, port, folder / "log") as server:
            wait_until_ready(f"http://127.0.0.1:{port}")
            yield server


def measure(server: Server, network: str, seconds: float) -> list[dict[str, Any]]:
    """Results of one network by rows per request."""
    shape = Shape.parse(network)
    publish(server.port, network, shape)
    cells = []
    for rows in ROWS:
        requests = requests_for(network, shape, rows)
        asyncio.run(load(server.port, requests, 1.0))  # warm
        before = server.cpu_seconds()
        summary = asyncio.run(load(server.port, requests, seconds))
        cells.append(
            {
                "network": network,
                "rows": rows,
                "requests_per_second": summary.throughput,
                "p50_ms": summary.milliseconds["p50"],
                "p99_ms": summary.milliseconds["p99"],
                "failures": sum(summary.failures.values()),
                "cpu": (server.cpu_seconds() - before) / seconds,
            }
        )
    return cells


def publish(port: int, network: str, shape: Shape) -> None:
    """Train a model of this shape on random rows for two epochs, through the service."""
    with tempfile.TemporaryDirectory() as folder, Client(f"http://127.0.0.1:{port}") as client:
        path = Path(folder) / f"{network}.npz"
        np.savez(path, **columns(shape), allow_pickle=False)
        request = {
            "model": network,
            "dataset": client.upload(path)["id"],
            "target": "y",
            "task": shape.task,
            "network": {"kind": "mlp", "hidden": shape.hidden},
            "training": {"epochs": 2, "refit": False},
            "pruning": [],
        }
        job = client.wait(client.submit_train(request)["id"], poll_seconds=0.2)
    if job["status"] != "succeeded":
        raise RuntimeError(f"training for the benchmark {job['status']}: {job['error']}")


def requests_for(network: str, shape: Shape, rows: int) -> list[bytes]:
    """Requests with different rows and the same options, so that the service may batch them."""
    random = np.random.default_rng(1)
    inputs = random.normal(size=(DIFFERENT, rows, 1, shape.inputs)).round(4).tolist()
    bodies = ({"model": network, "inputs": rows, "samples": SAMPLES} for rows in inputs)
    return [request_bytes("/predict", json.dumps(body).encode()) for body in bodies]


async def load(port: int, requests: list[bytes], seconds: float) -> Summary:
    client = LeanClient(port)
    try:
        return await closed_loop(client, requests, CLIENTS, seconds)
    finally:
        await client.close()


def table(cells: list[dict[str, Any]]) -> str:
    lines = [
        [
            cell["network"],
            cell["rows"],
            results.figure(cell["requests_per_second"], 2),
            results.figure(cell["rows"] * cell["requests_per_second"], 2),
            results.figure(cell["p50_ms"], 2),
            results.figure(cell["p99_ms"], 2),
            results.figure(cell["cpu"], 2),
            cell["failures"],
            results.figure(1e6 * cell["cpu"] / (cell["rows"] * cell["requests_per_second"]), 2),
        ]
        for cell in cells
    ]
    headers = ["network", "rows per request", "requests/s", "rows/s", "p50 ms", "p99 ms"]
    return results.markdown([*headers, "CPU, cores", "failed", "core-seconds per 10⁶ rows"], lines)


if __name__ == "__main__":
    main()
