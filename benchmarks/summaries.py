"""What a default prediction of an ordinary table costs, stage by stage: CPU time, one thread.

    python -m benchmarks.summaries [--models DIRECTORY] [--beside CHECKOUT] [--rounds 3]

Models are trained with default settings on scikit-learn's diabetes (whole numbers) and wine
(classes) and on generated prices (a density with a lower bound) and counts; DIRECTORY keeps them.
With CHECKOUT, a folder with another revision, both revisions predict with the same models in turns.
"Summary" is the network with 100 Sobol samples, moments and quantiles; "default" is the whole
answer of a request without `samples`, by what training measured to be cheapest. Compiled loops are
ready.
Stages do not add up to the whole, which also resolves options, scores errors and builds the answer.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_diabetes, load_wine

from models.artifact.files import read_model, write_model
from models.config import ModelConfig
from models.features.columns import ColumnProfile
from models.prediction.compiled.compiler import compiler
from models.prediction.options import PredictOptions
from models.training.recipe import resolve
from models.training.train import train

ROWS = (1, 32, 256)
STAGES = ("encode", "summary", "unlike rows", "whole", "default")
ROOT = Path(__file__).parents[1]
Table = dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--beside", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.measure:
        print(json.dumps(measure(arguments.models)))
        return
    kept = arguments.models or Path(tempfile.mkdtemp())
    missing = {n: t for n, t in tables().items() if not (kept / n / "model.json").is_file()}
    for name, table in missing.items():
        fit(table, kept / name)
    places = [p for p in (arguments.beside, ROOT) if p is not None]
    runs = [[in_child(place, kept) for place in places] for _ in range(arguments.rounds)]
    print(table_of([median([run[i] for run in runs]) for i in range(len(places))]))


def tables() -> dict[str, Table]:
    """The columns of each table; y is the target."""
    random = np.random.default_rng(0)
    x, noise = random.normal(size=(800, 6)), random.standard_t(5, size=800)
    prices = np.exp(3 + 0.5 * x[:, 0] + 0.3 * np.sin(2 * x[:, 1]) + 0.25 * noise)
    counts = random.poisson(np.exp(0.5 + 0.6 * x[:, 0])).astype(float)
    diabetes, wine = load_diabetes(), load_wine()
    classes = np.array([str(label) for label in wine.target], object)
    return {
        "diabetes": _columns(diabetes.data, diabetes.target.astype(float)),
        "prices": _columns(x, prices),
        "counts": _columns(x, counts),
        "wine": _columns(wine.data, classes),
    }


def _columns(x: np.ndarray, y: np.ndarray) -> Table:
    return {f"x{i}": column for i, column in enumerate(x.T.astype(float))} | {"y": y}


def fit(table: Table, place: Path) -> None:
    """Train with default settings, without pruned variants, and write the model."""
    types = {name: "category" if v.dtype == object else "number" for name, v in table.items()}
    task = "classification" if types["y"] == "category" else "regression"
    profiles = [ColumnProfile(name=name, type=kind) for name, kind in types.items()]
    config = resolve(
        ModelConfig(target="y", task=task), profiles, len(table["y"]),
        lambda names: {name: table[name] for name in names},
    )  # fmt: skip
    write_model(train(table, types, replace(config, pruning=())), place)


def in_child(checkout: Path, models: Path) -> dict[str, float]:
    """The times of one revision, measured in a process of its own."""
    command = [sys.executable, "-P", __file__, "--measure", "--models", str(models.resolve())]
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve()), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=checkout, env=environment, check=True, stdout=subprocess.PIPE
    )
    times: dict[str, float] = json.loads(done.stdout)
    return times


def measure(models: Path) -> dict[str, float]:
    """Milliseconds of each stage, by "table, rows, stage"."""
    found = {}
    compiler().wait()
    for name, table in tables().items():
        model: Any = read_model(models / name)
        for count in ROWS:
            columns = {key: np.resize(values, count) for key, values in table.items()}
            for stage, run in stages(model, columns).items():
                found[f"{name}, {count}, {stage}"] = milliseconds(run)
    return found


def stages(model: Any, columns: Table) -> dict[str, Callable[[], object]]:
    """What each stage does, alone."""
    options = model.resolve(PredictOptions(samples=100))
    x, fitted, engine = model.encode(columns), model.fitted(0.0), model.engine
    calibration = model.variant(0.0).calibration

    def summary() -> list[object]:
        return list(engine.summaries(fitted, x, options, None, calibration))

    return {
        "encode": lambda: model.encode(columns),
        "summary": summary,
        "unlike rows": lambda: model.surprises(x),
        "whole": lambda: model.predict(columns, options),
        "default": lambda: model.predict(columns, PredictOptions()),
    }


def milliseconds(run: Callable[[], object], least_seconds: float = 0.1) -> float:
    """The median CPU time."""
    times, end = [], time.perf_counter() + least_seconds
    while len(times) < 7 or time.perf_counter() < end:
        start = time.process_time()
        run()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times)


def median(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def table_of(revisions: list[dict[str, float]]) -> str:
    """A row for each table and number of rows; of two revisions "before → after"."""
    lines = [f"| table | rows | {' | '.join(STAGES)} |", "| --- |" + " ---: |" * (1 + len(STAGES))]
    for key in dict.fromkeys(key.rsplit(", ", 1)[0] for key in revisions[0]):
        cells = [
            " → ".join(f"{found[f'{key}, {stage}']:.2f}" for found in revisions)
            if f"{key}, {stage}" in revisions[0] else ""
            for stage in STAGES
        ]  # fmt: skip
        lines.append(f"| {key.replace(', ', ' | ')} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
