"""Errors of each sampler's mean and variance, and the time to reach a given error.

    python -m benchmarks.samplers [--picture docs/images/samplers.png]

Models are trained on generated rows and on scikit-learn's digits. Errors are root mean squares over
rows and seeds. Errors of the mean are in predictive standard deviations, errors of the total
variance are relative. The reference uses 200,000 independent samples. Only times depend on the
machine.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor

from benchmarks import results
from benchmarks.pictures import draw_samplers
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.features.columns import ColumnProfile, Columns
from models.prediction.options import PredictOptions, Sampler
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import train

SAMPLERS: tuple[Sampler, ...] = ("monte_carlo", "sobol")
SAMPLES = (3, 10, 30, 100, 300, 1000)
ROWS = 24
TRUTH_RUNS, TRUTH_SAMPLES = 20, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--picture", type=Path, default=results.RESULTS / "samplers.png")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cells = [
        cell
        for name, (model, columns) in models().items()
        for cell in measure(name, model, model.encode(columns), arguments.seeds)
    ]
    data = {"machine": results.machine(), "seeds": arguments.seeds, "cells": cells}
    results.save("samplers", data)
    draw_samplers(data, arguments.picture)
    print(table(cells))
    print(time_to_error(cells))


def models() -> dict[str, tuple[TabularModel, Columns]]:
    """Models with their test rows: a table with one and with two hidden layers, and images."""
    table, images = generated(2000, 0), digits()
    unseen = {name: values[:ROWS] for name, values in generated(ROWS, 1).items()}
    chosen = {name: values[:: len(values) // ROWS][:ROWS] for name, values in images.items()}
    return {
        "13-50-2": (fit(table, (50,), 150), unseen),
        "13-50-50-2": (fit(table, (50, 50), 150), unseen),
        "64-200-200-10": (fit(images, (200, 200), 40), chosen),
    }


def generated(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Rows with 13 features, of which 3 set the mean and 1 the noise."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 13))
    mean = np.sin(2 * x[:, 0]) * x[:, 1] + np.abs(x[:, 2])
    y = mean + 0.3 * (1 + np.abs(x[:, 3])) * random.normal(size=rows)
    return {"x": x, "y": y}


def digits() -> dict[str, np.ndarray]:
    """Scikit-learn's 1,797 digits of 8 × 8 pixels."""
    data = load_digits()
    return {"x": data.images, "y": np.array([str(digit) for digit in data.target], dtype=object)}


def fit(
    columns: dict[str, np.ndarray],
    hidden: tuple[int, ...],
    epochs: int,
    pruning: tuple[float, ...] = (),
) -> TabularModel:
    """Train with the recipe, and with these widths, epochs and pruned variants."""
    x, kind = columns["x"], "category" if columns["y"].dtype == object else "number"
    profiles = [ColumnProfile(name="x", type="tensor", shape=x.shape[1:])]
    profiles.append(ColumnProfile(name="y", type=kind))
    config = ModelConfig(
        target="y",
        network=MLPConfig(hidden=hidden),
        training=TrainingConfig(epochs=epochs),
        pruning=pruning,
    )
    types = {"x": "tensor", "y": kind}
    return train(columns, types, resolve(config, profiles, len(x)))


def measure(name: str, model: TabularModel, x: Tensor, seeds: int) -> Iterator[dict[str, Any]]:
    """Errors, `mc_error` and milliseconds per sampler and number of samples."""
    truth = exact(model, x)
    for sampler in SAMPLERS:
        for samples in SAMPLES:
            plain = PredictOptions(sampler=sampler, samples=samples, intervals=())
            runs = [run(model, x, replace(plain, seed=seed), truth) for seed in range(seeds)]
            yield {"model": name, "sampler": sampler, "samples": samples, **pooled(runs)}
    moments = run(model, x, PredictOptions(sampler="moments", intervals=()), truth)
    yield {"model": name, "sampler": "moments", "samples": 0, **pooled([moments])}


def exact(model: TabularModel, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Mean and total variance of the predictive distribution."""
    parts = []
    for seed in range(TRUTH_RUNS):
        options = PredictOptions(
            sampler="monte_carlo", samples=TRUTH_SAMPLES, seed=10_000 + seed, intervals=()
        )
        prediction = model.predict_rows(x, options)
        parts.append((prediction.mean, prediction.variance["total"]))
    means, variances = (np.stack(values) for values in zip(*parts, strict=True))
    return means.mean(0), variances.mean(0) + means.var(0)


def run(
    model: TabularModel,
    x: Tensor,
    options: PredictOptions,
    truth: tuple[np.ndarray, np.ndarray],
) -> dict[str, float]:
    """Squared errors of one seed, and the time of a repeated request."""
    prediction = model.predict_rows(x, options)
    started = time.perf_counter()
    model.predict_rows(x, options)
    milliseconds = 1000 * (time.perf_counter() - started)
    mean, variance = truth
    claimed = (
        np.zeros(1)
        if "mc_error" not in prediction.values
        else np.square(prediction["mc_error"]) / variance
    )
    return {
        "mean": float((np.square(prediction.mean - mean) / variance).mean()),
        "variance": float(np.square(prediction.variance["total"] / variance - 1).mean()),
        "mc_error": float(claimed.mean()),
        "milliseconds": milliseconds,
    }


def pooled(runs: list[dict[str, float]]) -> dict[str, float]:
    """Root mean square errors over the seeds, and the median of the times."""
    root = {
        name: statistics.mean(r[name] for r in runs) ** 0.5
        for name in ("mean", "variance", "mc_error")
    }
    return root | {"milliseconds": statistics.median(r["milliseconds"] for r in runs)}


def table(cells: list[dict[str, Any]]) -> str:
    """One line per sampler and number of samples, with its errors."""
    lines = [
        [
            cell["model"],
            cell["sampler"],
            cell["samples"] or "–",
            *(results.figure(cell[name], 2) for name in ("mean", "mc_error", "variance")),
            results.figure(cell["milliseconds"]),
        ]
        for cell in cells
    ]
    headers = ["network", "sampler", "samples", "error of the mean", "mc_error says"]
    return results.markdown([*headers, "error of the variance", "ms"], lines)


def time_to_error(cells: list[dict[str, Any]]) -> str:
    """Milliseconds of Sobol to reach the error of the mean of 300 independent samples."""
    lines = []
    for name in dict.fromkeys(cell["model"] for cell in cells):
        mine = [cell for cell in cells if cell["model"] == name]
        reference = next(c for c in mine if c["sampler"] == "monte_carlo" and c["samples"] == 300)
        sobol = [c for c in mine if c["sampler"] == "sobol" and c["mean"] <= reference["mean"]]
        best = min(sobol, key=lambda cell: cell["samples"], default=None)
        found = [best["samples"], results.figure(best["milliseconds"])] if best else ["–", "–"]
        lines.append([name, results.figure(reference["mean"], 2), *found])
        lines[-1].append(results.figure(reference["milliseconds"]))
    headers = ["network", "error", "sobol samples", "sobol, ms", "300 independent samples, ms"]
    return results.markdown(headers, lines)


if __name__ == "__main__":
    main()
