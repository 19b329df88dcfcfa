"""Throughput of one core: predictions per second by rows × samples, training jobs per hour.

    python -m benchmarks.capacity --jobs

Medians of repeated runs on one thread, or with `--device cuda` on one GPU. A run goes from encoded
rows to means, variances and a 90 % interval, as in offline predictions. `docs/scaling.md` uses
these figures.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import results
from benchmarks.shapes import Shape, stored
from models.config import ModelConfig
from models.features.columns import ColumnProfile
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

NETWORKS = ("13-50-2", "13-50-50-2", "784-400-400-10", "784-1200-1200-10")
ROWS = (1, 8, 32, 256, 2048)
SAMPLES = (10, 100, 1000)
LONGEST_SECONDS = 12.0  # runs that are expected to take longer are skipped
SECONDS = 2.0  # per cell, and at least three repetitions
TABLES = ((1_000, 8), (10_000, 8))
SECONDS_PER_DAY = 86_400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", action="store_true", help="also train: about 4 minutes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    cells = [cell for name in NETWORKS for cell in measure(name, arguments.device)]
    jobs = [job(*table, arguments.device) for table in TABLES] if arguments.jobs else []
    results.save("capacity", {"machine": results.machine(), "cells": cells, "jobs": jobs})
    print(table(cells), job_table(jobs), sep="\n\n")


def measure(network: str, device: str) -> list[dict[str, Any]]:
    """Seconds by rows and samples of one network. Runs that would take too long are skipped."""
    with tempfile.TemporaryDirectory() as folder:
        model = stored(Shape.parse(network), Path(folder) / "model", device)
    cells: list[dict[str, Any]] = []
    for samples in SAMPLES:
        seconds = 0.0
        for rows in ROWS:
            largest = max(ROWS[0], cells[-1]["rows"] if seconds else ROWS[0])
            if seconds * rows / largest > LONGEST_SECONDS:
                break
            seconds = one(model, Shape.parse(network).inputs, rows, samples)
            cells.append({"network": network, "rows": rows, "samples": samples, "seconds": seconds})
    return cells


def one(model: TabularModel, inputs: int, rows: int, samples: int) -> float:
    """Median seconds of one prediction."""
    x = torch.randn(rows, inputs, generator=torch.Generator().manual_seed(1)).to(model.device)
    options = PredictOptions(samples=samples, intervals=(0.9,))
    times: list[float] = []
    model.predict_rows(x, options)
    while sum(times) < SECONDS or len(times) < 3:
        started = time.perf_counter()
        model.predict_rows(x, options)  # returns arrays on the host, so the device has finished
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def job(rows: int, features: int, device: str) -> dict[str, Any]:
    """Seconds of one training with all defaults: fit, four pruned variants, refit, scores."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, features))
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + random.normal(0, 0.2, rows)
    columns = {f"x{i}": x[:, i] for i in range(features)} | {"y": y}
    profiles = [ColumnProfile(name=name, type="number") for name in columns]
    config = resolve(ModelConfig(target="y"), profiles, rows)
    started = time.perf_counter()
    train(columns, dict.fromkeys(columns, "number"), config, device=device)
    return {"rows": rows, "features": features, "seconds": time.perf_counter() - started}


def table(cells: list[dict[str, Any]]) -> str:
    """Rows per second, and the cores needed for a billion rows a day."""
    lines = []
    for network in NETWORKS:
        for samples in SAMPLES:
            rates = {
                cell["rows"]: cell["rows"] / cell["seconds"]
                for cell in cells
                if (cell["network"], cell["samples"]) == (network, samples)
            }
            cores = 1e9 / SECONDS_PER_DAY / max(rates.values())
            figures = [results.figure(rates.get(rows), 2) for rows in ROWS]
            seconds = 1e6 / max(rates.values())
            last = [results.figure(cores, 2), results.figure(seconds, 2)]
            lines.append([network, samples, *figures, *last])
    headers = [
        "network",
        "samples",
        *(f"{rows} at a time" for rows in ROWS),
        "cores for 10⁹ rows a day",
        "core-seconds per 10⁶ rows",
    ]
    return results.markdown(headers, lines)


def job_table(jobs: list[dict[str, Any]]) -> str:
    """Seconds per job, and jobs per hour of one worker."""
    lines = [
        [f"{j['rows']:,} × {j['features']}", results.figure(j["seconds"]), int(3600 / j["seconds"])]
        for j in jobs
    ]
    return results.markdown(["table", "seconds per job", "jobs per worker hour"], lines)


if __name__ == "__main__":
    main()
