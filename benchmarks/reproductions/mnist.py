"""MNIST: a published multilayer perceptron with its pruning table, and a convolutional network.

    python -m benchmarks.reproductions.mnist --data FOLDER [--network mlp|cnn] [--epochs 10]

Error, log likelihood and calibration on the 10,000 test images with 30 samples, for the full
posterior and every pruned variant, with the published errors.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import data, results
from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    KLConfig,
    MLPConfig,
    ModelConfig,
    NetworkConfig,
    TrainingConfig,
)
from models.features.columns import ColumnProfile
from models.tabular.model import TabularModel
from models.training.recipe import resolve
from models.training.train import TrainingRun, train

NETWORKS: dict[str, NetworkConfig] = {
    "mlp": MLPConfig(hidden=(400, 400)),
    "cnn": ConvolutionalConfig(channels=(16, 32), kernel=3, pool=2, hidden=(128,)),
}
PRUNING = {"mlp": (0.1, 0.25, 0.5, 0.75, 0.95, 0.99), "cnn": (0.5,)}
SAMPLES = 30
# Test accuracy in per cent after 10 epochs of plain SGD on 784-400-400-10, by fraction pruned.
TUTORIAL = {0.0: 97.75, 0.1: 97.77, 0.25: 97.79, 0.5: 97.56, 0.75: 96.02, 0.95: 72.59, 0.99: 37.53}
LABELS = tuple("0123456789")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder: benchmarks/data.py")
    parser.add_argument("--network", choices=NETWORKS, default="mlp")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--tune", type=int, default=1, help="epochs of fine-tuning per variant")
    parser.add_argument("--kl-weight", type=float, help="default: the recipe's")
    parser.add_argument("--estimator", choices=("local", "weight"))
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--rows", type=int, help="training images; all by default")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    started = time.perf_counter()
    model = fit(arguments)
    minutes = (time.perf_counter() - started) / 60
    test = columns(*data.mnist(arguments.data, "test"))
    scores = {prune: model.evaluate(test, prune=prune, samples=SAMPLES) for prune in model.variants}
    print(f"{arguments.network}: {model.num_weights:,} weights, {minutes:.1f} minutes\n")
    print(table(model, scores, TUTORIAL if arguments.network == "mlp" else {}))
    kept = {"settings": {k: str(v) for k, v in vars(arguments).items()}, "minutes": minutes}
    name = f"mnist-{arguments.network}"
    results.save(name, {"machine": results.machine(), **kept, "scores": scores})


def columns(images: np.ndarray, labels: np.ndarray) -> dict[str, np.ndarray]:
    return {"image": images, "digit": np.array(labels.astype(str), dtype=object)}


def fit(arguments: argparse.Namespace) -> TabularModel:
    """Train with the recommended recipe and the options of the command line."""
    images, labels = data.mnist(arguments.data, "train")
    train_columns = columns(images[: arguments.rows], labels[: arguments.rows])
    profiles = [
        ColumnProfile(name="image", type="tensor", shape=(28, 28)),
        ColumnProfile(name="digit", type="category", levels=LABELS),
    ]
    wanted = ModelConfig(
        target="digit",
        network=NETWORKS[arguments.network],
        method=BBBConfig(estimator=arguments.estimator, kl=KLConfig(weight=arguments.kl_weight)),
        training=TrainingConfig(
            epochs=arguments.epochs,
            fine_tune_epochs=arguments.tune,
            learning_rate=arguments.learning_rate,
        ),
        pruning=PRUNING[arguments.network],
    )
    config = resolve(wanted, profiles, len(train_columns["digit"]))
    config = replace(config, training=replace(config.training, validation_fraction=0.02))
    types = {profile.name: profile.type for profile in profiles}
    return train(train_columns, types, config, TrainingRun(_show))


def _show(progress: Any) -> None:
    score = progress.metrics.get("held_out_log_likelihood")
    score_text = "" if score is None else f", held-out log likelihood {score:.4f}"
    print(f"{progress.stage} {progress.epoch}/{progress.epochs}{score_text}", flush=True)


def table(
    model: TabularModel, scores: dict[float, dict[str, Any]], reference: dict[float, float]
) -> str:
    headers = ("pruned", "weights left", "error", "log likelihood", "ECE", "reference: error")
    lines = [
        (
            f"{100 * prune:g} %",
            f"{model.variant(prune).state.num_weights:,}",
            f"{100 * (1 - found['accuracy']):.2f} %",
            f"{found['log_likelihood']:.4f}",
            f"{100 * found['ece']:.2f} %",
            f"{100 - reference[prune]:.2f} %" if prune in reference else "–",
        )
        for prune, found in scores.items()
    ]
    return results.markdown(headers, lines)


if __name__ == "__main__":
    main()
