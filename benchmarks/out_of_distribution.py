"""How well each score tells rows unlike the training rows from rows like them: AUROC.

    python -m benchmarks.out_of_distribution --data FOLDER [tables] [digits] [mnist]

Tables lose the top tenth of one feature's values from training: those are the strange rows, the
usual ones are a random tenth of the rest. The digits of scikit-learn are strange when moved by two
pixels, drowned in noise, or with their pixels shuffled; those of MNIST beside Fashion-MNIST. After
each AUROC comes the share of strange rows that are flagged when one usual row in a hundred may be.
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import data, results
from benchmarks.samplers import digits, fit
from models.evaluation.metrics import auroc
from models.evaluation.out_of_distribution import CLASS_SCORES, NUMBER_SCORES, Detector, ood_score
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

PRUNING = (0.9, 0.95)
SAMPLES = 100
TABLES = ("concrete", "energy", "yacht")
FEATURES = 2  # of each table, in turn: their first ones
MNIST_ROWS, TEST_ROWS = 20_000, 2_000

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """Rows to learn from, rows like them, and kinds of rows that are not."""

    name: str
    train: Columns
    usual: Columns
    strange: Mapping[str, Columns]
    hidden: tuple[int, ...]
    epochs: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder: benchmarks/data.py")
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], help="all by default")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cells: list[dict[str, Any]] = []
    for kind in arguments.kinds or KINDS:
        found = []
        for case in KINDS[kind](arguments.data):
            started = time.perf_counter()
            found += list(measure(case))
            print(f"{case.name}: {time.perf_counter() - started:.0f} s", flush=True)
        print(table(found))
        cells += found
    results.save("out_of_distribution", {"machine": results.machine(), "cells": cells})


def tables(root: Path) -> Iterator[Case]:
    """One case per feature whose largest values are unknown in training."""
    for name in TABLES:
        columns, _ = data.uci(root, name)
        y, x = columns["y"], np.stack([v for k, v in columns.items() if k != "y"], axis=1)
        usual_share = np.random.default_rng(0).random(len(x)) < 0.1
        for feature in range(FEATURES):
            top = x[:, feature] >= np.quantile(x[:, feature], 0.9)
            sides = [
                {"x": x[side], "y": y[side]}
                for side in (~top & ~usual_share, ~top & usual_share, top)
            ]
            train, usual, strange = sides
            epochs = max(1, 2_000 // -(-len(train["y"]) // 256))
            yield Case(name, train, usual, {"top tenth of a feature": strange}, (50,), epochs)


def small_digits(root: Path) -> Iterator[Case]:
    """Images of 8 × 8; whatever is done to them, every pixel stays within its range."""
    columns, random = digits(), np.random.default_rng(0)
    is_usual = random.random(len(columns["y"])) < 0.2
    train, usual = ({k: v[s] for k, v in columns.items()} for s in (~is_usual, is_usual))
    x = usual["x"]
    shuffled = x.reshape(len(x), -1)[:, random.permutation(64)].reshape(x.shape)
    strange = {
        "moved by two pixels": {"x": np.roll(x, 2, axis=2)},
        "noise added": {"x": np.clip(x + random.normal(0, 8, x.shape), 0, 16)},
        "pixels shuffled": {"x": shuffled},
    }
    yield Case("digits", train, usual, strange, (200, 200), 40)


def mnist(root: Path) -> Iterator[Case]:
    """A part of the training images, to be quick."""
    images, labels = data.mnist(root, "train")
    train = {"x": images[:MNIST_ROWS], "y": np.array(labels[:MNIST_ROWS].astype(str), object)}
    usual = {"x": data.mnist(root, "test")[0][:TEST_ROWS]}
    strange = {"x": data.mnist(root, "test", "fashion-mnist")[0][:TEST_ROWS]}
    yield Case("mnist", train, usual, {"Fashion-MNIST": strange}, (400, 400), 5)


def measure(case: Case) -> Iterator[dict[str, Any]]:
    """AUROC and the share that is flagged, per variant, kind of strange rows and score."""
    model = fit(case.train, case.hidden, case.epochs, PRUNING)
    known = NUMBER_SCORES if model.task == "regression" else CLASS_SCORES
    for prune in model.variants:
        usual = scores(model, case.usual, prune, list(known))
        for kind, columns in case.strange.items():
            strange = scores(model, columns, prune, list(known))
            for name in known:
                bound = Detector.fit(name, usual[name].numpy(), 0.01)
                yield {
                    "case": f"{case.name}: {kind}",
                    "prune": prune,
                    "score": name,
                    "auroc": auroc(usual[name], strange[name]),
                    "flagged": float(bound.flags(strange[name].numpy()).mean()),
                }


def scores(
    model: TabularModel, columns: Columns, prune: float, names: list[str]
) -> dict[str, Tensor]:
    """Every score of every row, by the sampler that is the model's default."""
    x = model.encode({"x": columns["x"]})
    options = model.resolve(PredictOptions(prune=prune, samples=SAMPLES))
    parts = [
        {name: ood_score(mixture, name) for name in names}
        for _, mixture in model.engine.mixtures(
            model.fitted(prune), x, str(options.sampler), int(options.seed or 0), SAMPLES
        )
    ]
    return {name: torch.cat([part[name] for part in parts]) for name in names}


def table(cells: list[dict[str, Any]]) -> str:
    """A line per case and variant, over its features; a column per score: AUROC, flagged."""
    names = list(dict.fromkeys(cell["score"] for cell in cells))
    keys = dict.fromkeys((cell["case"], cell["prune"]) for cell in cells)
    lines = [
        [case, f"{100 * prune:g} %", *(_told(cells, case, prune, name) for name in names)]
        for case, prune in keys
    ]
    return results.markdown(["strange rows", "pruned", *names], lines)


def _told(cells: list[dict[str, Any]], case: str, prune: float, score: str) -> str:
    wanted = (case, prune, score)
    same = [c for c in cells if (c["case"], c["prune"], c["score"]) == wanted]
    mean = {key: float(np.mean([cell[key] for cell in same])) for key in ("auroc", "flagged")}
    return f"{mean['auroc']:.3f}, {100 * mean['flagged']:.0f} %"


KINDS = {"tables": tables, "digits": small_digits, "mnist": mnist}


if __name__ == "__main__":
    main()
