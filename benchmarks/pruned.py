"""Pruned variants compared with the full posterior: milliseconds, bytes, held-out scores.

    python -m benchmarks.pruned [--artifact DIRECTORY] [--data FOLDER]

By default it trains a 64-400-400-10 network on scikit-learn's digits. With `--data` it trains
784-400-400-10 on MNIST (some minutes). With `--artifact` it reads a stored version.
"""

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks import data, results
from benchmarks.engine import timed
from benchmarks.interleaving import interleave, ratio
from benchmarks.samplers import digits, fit
from models.artifact.files import read_model, write_model
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

HIDDEN = (400, 400)
PRUNING = (0.5, 0.75, 0.9)
ROWS = (1, 32, 256)
SAMPLES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--artifact", type=Path, help="directory of a stored version")
    parser.add_argument("--data", type=Path, help="a folder of data sets: benchmarks/data.py")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=30)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.artifact or store(arguments.data, Path(temporary))
        print(table(read_model(directory), arguments.repetitions))


def store(folder: Path | None, directory: Path) -> Path:
    """Train on MNIST if its folder is given, else on digits, and write the artifact."""
    columns, epochs = digits(), 40
    if folder:
        images, labels = data.mnist(folder, "train")
        columns, epochs = {"x": images, "y": np.array(labels.astype(str), dtype=object)}, 5
    write_model(fit(columns, HIDDEN, epochs, PRUNING), directory)
    return directory


def table(model: TabularModel, repetitions: int) -> str:
    """One line per variant."""
    times = {rows: measure(model, rows, repetitions) for rows in ROWS}
    full = model.variant(0.0)
    lines = []
    for prune in model.variants:
        variant, name = model.variant(prune), f"{prune:g}"
        speed = [
            f"{results.figure(statistics.median(times[rows][name]))} "
            f"({results.figure(1 / ratio(times[rows][name], times[rows]['0']), 2)} ×)"
            for rows in ROWS
        ]
        share = f"{100 * variant.num_bytes / full.num_bytes:.1f} %"
        widths = "-".join(str(layer.width) for layer in model.fitted(prune).groups[0].layers[:-1])
        accuracy = f"{100 * float(variant.metrics['accuracy']):.2f} %"
        lines.append([name, variant.by or "–", widths, share, accuracy, *speed])
    headers = ["removed", "by", "hidden units left", "bytes", "held-out accuracy"]
    return results.markdown([*headers, *(f"{rows} rows, ms (faster)" for rows in ROWS)], lines)


def measure(model: TabularModel, rows: int, repetitions: int) -> dict[str, list[float]]:
    """Milliseconds of every variant, interleaved."""
    width = model.encoder.width
    x = torch.rand(rows, width, generator=torch.Generator().manual_seed(1))

    def predict(prune: float) -> None:
        model.predict_rows(x, PredictOptions(samples=SAMPLES, prune=prune, intervals=()))

    runs = {f"{prune:g}": timed(partial(predict, prune)) for prune in model.variants}
    for run in runs.values():
        run()
    return interleave(runs, dict.fromkeys(runs, max(5, repetitions // (1 + rows // 64))))


if __name__ == "__main__":
    main()
