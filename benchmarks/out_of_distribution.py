"""AUROC of each score between out-of-distribution rows and ordinary rows.

    python -m benchmarks.out_of_distribution --data FOLDER [tables] [digits] [mnist]

In tables, the out-of-distribution rows have the top tenth of one feature's values; they are removed
from training. The ordinary rows are a random tenth of the rest. For scikit-learn's digits they are
moved by two pixels, with noise, or with shuffled pixels; for MNIST they are Fashion-MNIST. Each
AUROC is followed by the share of them that is flagged at a false alarm rate of 1 %.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks import data, results
from benchmarks.samplers import digits, fit
from models.evaluation.class_scores import auroc
from models.evaluation.detector import Detector
from models.likelihoods.class_mixture import CategoricalMixture, Mixture
from models.likelihoods.number_mixture import NumberMixture, variance
from models.prediction.options import PredictOptions
from models.tabular.model import TabularModel

PRUNING = (0.9, 0.95)
SAMPLES = 100
TABLES = ("concrete", "energy", "yacht")
FEATURES = 2  # of each table, the first ones, in turn
MNIST_ROWS, TEST_ROWS = 20_000, 2_000

Columns = dict[str, np.ndarray]


def logit_disagreement(mixture: CategoricalMixture) -> Tensor:
    """mean_k var_s (l_sk − mean_j l_sj): how much the samples' logits differ.

    A constant added to all logits of a sample changes no probability, so each sample's logits are
    centred first. Unlike mutual information it keeps growing if the samples are certain.
    """
    logits = mixture.logits
    return variance(logits - logits.mean(-1, keepdim=True), correction=0).mean(-1)


def relative_disagreement(mixture: CategoricalMixture) -> Tensor:
    """`logit_disagreement` ÷ var_k mean_s l_sk, the variance of the classes' mean logits."""
    spread = mixture.logits.mean(0).var(-1, correction=0)
    return logit_disagreement(mixture) / spread.clamp_min(torch.finfo(spread.dtype).tiny)


NUMBER_SCORES: Mapping[str, Callable[[NumberMixture], Tensor]] = {
    "epistemic_variance": lambda mixture: mixture.epistemic(),
    "epistemic_share": lambda mixture: mixture.epistemic() / mixture.total(),
    "total_variance": lambda mixture: mixture.total(),
    "noise_disagreement": lambda m: variance(m.noise_variances().log(), correction=0),
}
CLASS_SCORES: Mapping[str, Callable[[CategoricalMixture], Tensor]] = {
    "mutual_information": CategoricalMixture.mutual_information,
    "total_entropy": CategoricalMixture.total_entropy,
    "logit_disagreement": logit_disagreement,
    "relative_disagreement": relative_disagreement,
    # −log Σ_k exp(mean_s l_sk) (Liu et al. 2020, arXiv 2010.03759, eq. 4)
    "energy": lambda mixture: -mixture.logits.mean(0).logsumexp(-1),
}


def ood_score(mixture: Mixture, name: str) -> Tensor:
    """The score of this name for every row; higher is more unlike training."""
    if isinstance(mixture, CategoricalMixture):
        return CLASS_SCORES[name](mixture)
    return NUMBER_SCORES[name](mixture)


@dataclass(frozen=True)
class Case:
    """Training rows, ordinary test rows, and kinds of out-of-distribution rows."""

    name: str
    train: Columns
    usual: Columns
    ood: Mapping[str, Columns]
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
    """One case per feature. Its largest values are not in the training rows."""
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
            train, usual, ood = sides
            epochs = max(1, 2_000 // -(-len(train["y"]) // 256))
            yield Case(name, train, usual, {"top tenth of a feature": ood}, (50,), epochs)


def small_digits(root: Path) -> Iterator[Case]:
    """Digits of 8 × 8 pixels, changed such that every pixel stays in its range."""
    columns, random = digits(), np.random.default_rng(0)
    is_usual = random.random(len(columns["y"])) < 0.2
    train, usual = ({k: v[s] for k, v in columns.items()} for s in (~is_usual, is_usual))
    x = usual["x"]
    shuffled = x.reshape(len(x), -1)[:, random.permutation(64)].reshape(x.shape)
    ood = {
        "moved by two pixels": {"x": np.roll(x, 2, axis=2)},
        "noise added": {"x": np.clip(x + random.normal(0, 8, x.shape), 0, 16)},
        "pixels shuffled": {"x": shuffled},
    }
    yield Case("digits", train, usual, ood, (200, 200), 40)


def mnist(root: Path) -> Iterator[Case]:
    """MNIST, with some of the training images to save time."""
    images, labels = data.mnist(root, "train")
    train = {"x": images[:MNIST_ROWS], "y": np.array(labels[:MNIST_ROWS].astype(str), object)}
    usual = {"x": data.mnist(root, "test")[0][:TEST_ROWS]}
    ood = {"x": data.mnist(root, "test", "fashion-mnist")[0][:TEST_ROWS]}
    yield Case("mnist", train, usual, {"Fashion-MNIST": ood}, (400, 400), 5)


def measure(case: Case) -> Iterator[dict[str, Any]]:
    """AUROC and flagged share per variant, kind of out-of-distribution rows and score."""
    model = fit(case.train, case.hidden, case.epochs, PRUNING)
    known = NUMBER_SCORES if model.task == "regression" else CLASS_SCORES
    for prune in model.variants:
        usual = scores(model, case.usual, prune, list(known))
        for kind, columns in case.ood.items():
            ood = scores(model, columns, prune, list(known))
            for name in known:
                bound = Detector.fit(name, usual[name].numpy(), 0.01)
                yield {
                    "case": f"{case.name}: {kind}",
                    "prune": prune,
                    "score": name,
                    "auroc": auroc(usual[name], ood[name]),
                    "flagged": float(bound.flags(ood[name].numpy()).mean()),
                }


def scores(
    model: TabularModel, columns: Columns, prune: float, names: list[str]
) -> dict[str, Tensor]:
    """All scores of all rows, with the model's default sampler."""
    x = model.encode({"x": columns["x"]})
    options = model.resolve(PredictOptions(prune=prune, samples=SAMPLES))
    parts = [
        {name: ood_score(mixture, name) for name in names}
        for _, mixture in model.engine.mixtures(model.fitted(prune), x, options.sampling)
    ]
    return {name: torch.cat([part[name] for part in parts]) for name in names}


def table(cells: list[dict[str, Any]]) -> str:
    """One line per case and variant: per score AUROC and flagged share, means over features."""
    names = list(dict.fromkeys(cell["score"] for cell in cells))
    keys = dict.fromkeys((cell["case"], cell["prune"]) for cell in cells)
    lines = [
        [case, f"{100 * prune:g} %", *(_summary(cells, case, prune, name) for name in names)]
        for case, prune in keys
    ]
    return results.markdown(["out-of-distribution rows", "pruned", *names], lines)


def _summary(cells: list[dict[str, Any]], case: str, prune: float, score: str) -> str:
    wanted = (case, prune, score)
    same = [c for c in cells if (c["case"], c["prune"], c["score"]) == wanted]
    mean = {key: float(np.mean([cell[key] for cell in same])) for key in ("auroc", "flagged")}
    return f"{mean['auroc']:.3f}, {100 * mean['flagged']:.0f} %"


KINDS = {"tables": tables, "digits": small_digits, "mnist": mnist}


if __name__ == "__main__":
    main()
