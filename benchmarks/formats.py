"""Time of 100 samples by format and library of the products, beside torch's own float32.

    python -m benchmarks.formats [--network 784-1200-1200-10] [--artifact DIRECTORY]

Medians over interleaved runs; the ratios are medians over the rounds. Also says what a load of the
version would choose on this machine, and how long that takes.
"""

import argparse
import statistics
import time
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
from models.prediction.products.choice import Choice, is_large
from models.prediction.products.kernels import Bfloat16Layer, OneDnnLayer
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
    """The model with one kernel for all its large layers."""
    plain = make_ready(model.network, model.variant(0.0).state)
    assert isinstance(plain, Fitted)
    kernels = {"oneDNN": OneDnnLayer, "bfloat16": Bfloat16Layer}
    return {"torch": plain, **{name: with_kernel(plain, kind) for name, kind in kernels.items()}}


def with_kernel(plain: Fitted, kind: type[OneDnnLayer] | type[Bfloat16Layer]) -> Fitted:
    """All large layers by this kernel; the first, which stays in float32, by oneDNN."""

    def converted(layer: Layer, kernel: type[OneDnnLayer] | type[Bfloat16Layer]) -> Layer:
        large = isinstance(layer, LayerMoments) and is_large(layer)
        return kernel.of(layer) if large and isinstance(layer, LayerMoments) else layer

    first, *later = plain.local.layers
    layers = (converted(first, OneDnnLayer), *(converted(one, kind) for one in later))
    return replace(plain, local=replace(plain.local, layers=layers))


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
    """What a load chooses here, with its time."""
    plain, variant = formats(model)["torch"], model.variant(0.0)
    started = time.perf_counter()
    tuned = plain.tuned(Choice(rounded=variant.rounded))
    seconds = time.perf_counter() - started
    names = ", ".join(type(layer).__name__ for layer in tuned.local.layers)
    return f"{names}, chosen in {1000 * seconds:.0f} ms; measured at training: {variant.rounding}"


if __name__ == "__main__":
    main()
