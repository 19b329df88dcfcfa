"""MNIST with the default recipe: error, calibration, out-of-distribution detection.

    python -m benchmarks.mnist --data FOLDER [--units 400 800 1200] [--seeds 0] [--picture FILE]

Two hidden layers of `units` ReLU units, other options from the recipe, no augmentation. The test
rows are used only once, after the training. The out-of-distribution images are Fashion-MNIST's test
images; AUROC is the probability that one scores above a digit. An interrupted run resumes: results
are in benchmarks/results/mnist.json, checkpoints in a folder beside it.
"""

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import data, results
from benchmarks.out_of_distribution import CLASS_SCORES
from benchmarks.pictures import picture
from models.config import MLPConfig, ModelConfig, TrainingConfig
from models.evaluation.class_scores import auroc
from models.features.columns import ColumnProfile, Columns
from models.likelihoods.mixture import CategoricalMixture
from models.tabular.model import TabularModel
from models.training.progress import Progress
from models.training.recipe import resolve
from models.training.train import TrainingRun, train

PRUNING = (0.5, 0.75, 0.9, 0.95, 0.98)
SAMPLES = 100
TYPES = {"image": "tensor", "digit": "number"}
SCORED = 0.01  # share of training rows to hold out; small, because there are test rows
SCORES = {
    "entropy": "total_entropy",
    "mutual_information": "mutual_information",
    "disagreement": "logit_disagreement",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="see benchmarks/data.py")
    parser.add_argument("--units", type=int, nargs="+", default=[400])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    settings = {"pruning": PRUNING, "samples": SAMPLES}
    found = results.resumable("mnist", settings) or {"settings": settings, "runs": {}}
    for units in arguments.units:
        for seed in arguments.seeds:
            if f"{units}-{seed}" not in found["runs"]:
                found["runs"][f"{units}-{seed}"] = measure(arguments.data, units, seed)
                results.save("mnist", found | {"machine": results.machine()})
            print(table(found["runs"]), flush=True)
    if arguments.picture:
        draw(found["runs"], arguments.picture)


def measure(folder: Path, units: int, seed: int) -> dict[str, Any]:
    """Train one network, and evaluate its variants on the test rows.

    Minutes are None if the run was interrupted.
    """
    kept = results.RESULTS / f"mnist-{units}-{seed}"
    resumed, started = kept.exists(), time.process_time()
    model = fit(folder, units, seed, kept)
    minutes = None if resumed else (time.process_time() - started) / 60
    digits = columns(folder, "test")
    ood = {"image": data.mnist(folder, "test", "fashion-mnist")[0]}
    variants = {f"{p:g}": score(model, p, digits, ood) for p in model.variants}
    shutil.rmtree(kept, ignore_errors=True)
    return {"cpu_minutes": minutes, "notes": model.notes, "variants": variants}


def fit(folder: Path, units: int, seed: int, kept: Path) -> TabularModel:
    """Train with the recipe; `kept` holds the checkpoints of an interrupted run."""
    rows = columns(folder, "train")
    profiles = [
        ColumnProfile(name="image", type="tensor", shape=rows["image"].shape[1:]),
        ColumnProfile(name="digit", type="number", min=0.0, max=9.0),
    ]
    request = ModelConfig(
        target="digit",
        task="classification",
        network=MLPConfig(hidden=(units, units)),
        training=TrainingConfig(seed=seed, validation_fraction=SCORED),
        pruning=PRUNING,
    )
    config = resolve(request, profiles, len(rows["image"]))
    print(config.training, config.method, flush=True)
    trained = train(rows, TYPES, config, TrainingRun(show, checkpoint_dir=kept))
    assert isinstance(trained, TabularModel)
    return trained


def columns(folder: Path, side: str) -> dict[str, np.ndarray]:
    """Images and digits as columns."""
    images, labels = data.mnist(folder, side)
    return {"image": images, "digit": labels.astype(np.float64)}


def show(progress: Progress) -> None:
    """Print the progress of an epoch."""
    print(f"{progress.stage} {progress.epoch}/{progress.epochs} {progress.metrics}", flush=True)


def score(model: TabularModel, prune: float, digits: Columns, ood: Columns) -> dict[str, Any]:
    """Metrics of the test rows, and each score's AUROC between them and the others."""
    metrics = model.evaluate(digits, prune=prune, samples=SAMPLES)
    usual, other = (ood_scores(model, prune, model.encode(rows)) for rows in (digits, ood))
    state = model.variant(prune).state
    size = {"bytes": sum(t.nbytes for t in state.pack().values()), "weights": state.num_weights}
    return {**size, **metrics, "auroc": {k: auroc(usual[k], other[k]) for k in SCORES}}


def ood_scores(model: TabularModel, prune: float, x: Tensor) -> dict[str, Tensor]:
    """The out-of-distribution scores of each row, from draws without a temperature."""
    parts = []
    for rows in x.split(1000):
        outputs, _ = model.engine.outputs(model.fitted(prune), rows, model.default_seed, SAMPLES)
        mixture = CategoricalMixture(outputs.double())
        parts.append({name: CLASS_SCORES[score](mixture) for name, score in SCORES.items()})
    return {name: torch.cat([part[name] for part in parts]) for name in SCORES}


def table(runs: dict[str, Any]) -> str:
    """One line per network and variant."""
    headers = [
        "units",
        "seed",
        "removed",
        "weights",
        "bytes",
        "test error",
        "log likelihood",
        "ECE",
    ]
    headers += [f"AUROC by {name.replace('_', ' ')}" for name in SCORES] + ["CPU minutes"]
    lines = []
    for name, run in runs.items():
        for prune, found in run["variants"].items():
            minutes = results.figure(run["cpu_minutes"], 2) if prune == "0" else ""
            lines.append([*name.split("-"), *_figures(prune, found), minutes])
    return results.markdown(headers, lines)


def draw(runs: dict[str, Any], path: Path) -> None:
    """Draw error, calibration and AUROC over the share of remaining weights."""
    with picture(path, 1, 3, (9.5, 2.7)) as (axes,):
        for name, run in runs.items():
            variants = list(run["variants"].items())
            left = [100 * (1 - float(prune)) for prune, _ in variants]
            curves = (
                [100 * (1 - found["accuracy"]) for _, found in variants],
                [100 * found["ece"] for _, found in variants],
                [found["auroc"]["entropy"] for _, found in variants],
            )
            for axis, curve in zip(axes, curves, strict=True):
                axis.plot(left, curve, "o-", label=f"2 × {name.split('-')[0]} units")
        titles = ("test error, %", "calibration error, %", "AUROC of Fashion-MNIST, entropy")
        for axis, title in zip(axes, titles, strict=True):
            axis.set(title=title, xscale="log", xlabel="weights left, %")
            axis.invert_xaxis()
        axes[0].set_ylim(0, 2)
        axes[1].set_ylim(0, 1)
        axes[2].set_ylim(0.95, 1)
        axes[0].legend(loc="lower left")


def _figures(prune: str, found: dict[str, Any]) -> list[str]:
    return [
        f"{100 * float(prune):.0f} %",
        f"{found['weights']:,}",
        f"{found['bytes']:,}",
        f"{100 * (1 - found['accuracy']):.2f} %",
        f"{found['log_likelihood']:.4f}",
        f"{100 * found['ece']:.2f} %",
        *(f"{found['auroc'][name]:.4f}" for name in SCORES),
    ]


if __name__ == "__main__":
    main()
