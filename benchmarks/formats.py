"""Time of 100 samples by format and library of the products, beside torch's own float32.

    python -m benchmarks.formats [--network 784-1200-1200-10] [--artifact DIRECTORY]

Medians over interleaved runs; the ratios are medians over the rounds. `rule` is what a load of the
version takes on this machine.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks import results
from benchmarks.engine import ROWS, SAMPLES, timed
from benchmarks.interleaving import interleave, ratio
from benchmarks.shapes import Shape, build
from models.artifact.files import read_model
from models.prediction.fitted import Fitted
from models.prediction.local import Layer, LayerMoments
from models.prediction.options import PredictOptions
from models.prediction.products import Bfloat16Layer, OneDnnLayer, SparseLayer, is_large
from models.tabular.model import TabularModel, make_ready


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="784-1200-1200-10")
    parser.add_argument("--artifact", type=Path, help="directory of a stored version")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    found = arguments.artifact
    model = read_model(found) if found else build(Shape.parse(arguments.network))
    print(table(model, arguments.repetitions))
    print(chosen(model))


def formats(model: TabularModel) -> dict[str, Fitted]:
    """The model with one kind of product for all its large layers, and by the rule."""
    plain = make_ready(model.network, model.variant(0.0).state)
    assert isinstance(plain, Fitted)
    kinds: dict[str, Callable[[LayerMoments], Layer]] = {
        "oneDNN": OneDnnLayer,
        "bfloat16": Bfloat16Layer.of,
        "sparse": SparseLayer.of,
    }
    by_kind = {name: with_kind(plain, kind) for name, kind in kinds.items()}
    return {"torch": plain, **by_kind, "rule": plain.tuned(model.variant(0.0).rounded)}


def with_kind(plain: Fitted, kind: Callable[[LayerMoments], Layer]) -> Fitted:
    """All large layers but the first, which stays in float32, with this kind of product."""

    def converted(layer: Layer) -> Layer:
        large = isinstance(layer, LayerMoments) and is_large(layer)
        return kind(layer) if large and isinstance(layer, LayerMoments) else layer

    (one,) = plain.groups
    first, *later = one.layers
    return replace(plain, groups=(replace(one, layers=(first, *map(converted, later))),))


def table(model: TabularModel, repetitions: int) -> str:
    """One line per number of rows."""
    lines = []
    for rows in ROWS:
        x = torch.rand(rows, model.encoder.width, generator=torch.Generator().manual_seed(1))
        runs = {name: timed(partial(predict, one, x)) for name, one in models(model).items()}
        for run in runs.values():
            run()
        times = interleave(runs, dict.fromkeys(runs, max(5, repetitions // (1 + rows // 64))))
        cells = [
            f"{results.figure(statistics.median(own))} "
            f"({results.figure(1 / ratio(own, times['torch']), 2)} ×)"
            for own in times.values()
        ]
        lines.append([rows, *cells])
    headers = ["rows", *(f"{name}, ms (faster)" for name in formats(model))]
    return results.markdown(headers, lines)


def models(model: TabularModel) -> dict[str, TabularModel]:
    """Copies of the model that predict by one format each."""
    copies = {}
    for name, fitted in formats(model).items():
        copies[name] = replace(model)
        vars(copies[name])["_fitted"][0.0] = fitted
    return copies


def predict(model: TabularModel, x: Tensor) -> None:
    """Mean and variance, without intervals."""
    model.predict_rows(x, PredictOptions(samples=SAMPLES, intervals=()))


def chosen(model: TabularModel) -> str:
    """What the rule takes here."""
    names = ", ".join(type(layer).__name__ for layer in formats(model)["rule"].groups[0].layers)
    return f"{names}; measured at training: {model.variant(0.0).rounding}"


if __name__ == "__main__":
    main()
