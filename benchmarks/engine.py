"""Time of 100 samples, compared with a deterministic forward pass and the processor's peak.

    python -m benchmarks.engine

Medians over interleaved runs. The peak is the speed of a matrix product of 2,048 × 1,200 × 1,200
numbers in the same rounds. Small networks are computed by compiled kernels, as after a load;
`torch` is the first sampler without them. Also measures the peak memory of 16 rows with increasing
numbers of samples; it must not grow.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from benchmarks import results
from benchmarks.interleaving import interleave, ratio
from benchmarks.shapes import Shape, build
from models.prediction.compiled.compiler import compiler
from models.prediction.options import PredictOptions, Sampler
from models.tabular.model import TabularModel

NETWORKS = ("784-1200-1200-10", "13-50-50-2")
ROWS = (1, 32, 256)
SAMPLES = 100
PEAK_ROWS, PEAK_WIDTH = 2048, 1200
SAMPLERS: tuple[Sampler, ...] = ("sobol", "monte_carlo", "moments")
COLUMNS = ("forward", "torch", *SAMPLERS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    compiler().wait()
    cells = []
    for network in arguments.networks:
        model = build(Shape.parse(network))
        cells += [measure(network, model, rows, arguments.repetitions) for rows in ROWS]
    results.save("engine", {"machine": results.machine(), "cells": cells})
    print(table(cells))
    print(memory(build(Shape.parse("784-1200-1200-10"))))


def measure(network: str, model: TabularModel, rows: int, repetitions: int) -> dict[str, Any]:
    """Interleaved times of each sampler, of a forward pass and of the large product."""
    shape, loaded = Shape.parse(network), replace(model, tuned=True)
    x = torch.randn(rows, shape.inputs, generator=torch.Generator().manual_seed(1))
    weights = model.network.layout.unflatten(model.variant(0.0).state.posterior.loc)
    runs = {
        "forward": timed(lambda: model.network(weights, x)),
        "peak": timed(peak_product()),
        "torch": timed(lambda: predict(model, x, SAMPLERS[0])),
        **{name: timed(lambda name=name: predict(loaded, x, name)) for name in SAMPLERS},
    }
    for run in runs.values():
        run()
    times = interleave(runs, dict.fromkeys(runs, max(5, repetitions // (1 + rows // 64))))
    return {"network": network, "rows": rows, "flop": flop(shape, rows), "times": times}


def predict(model: TabularModel, x: Tensor, sampler: Sampler) -> None:
    """Mean and variance of encoded rows, without intervals, as other libraries compute them."""
    model.predict_rows(x, PredictOptions(samples=SAMPLES, sampler=sampler, intervals=()))


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """A function that runs `work` and returns milliseconds."""

    def run() -> float:
        with torch.inference_mode():
            started = time.perf_counter()
            work()
            return 1000 * (time.perf_counter() - started)

    return run


def peak_product() -> Callable[[], Tensor]:
    """A matrix product large enough to run at full speed."""
    x, w = torch.rand(PEAK_ROWS, PEAK_WIDTH), torch.rand(PEAK_WIDTH, PEAK_WIDTH)
    out = torch.empty(PEAK_ROWS, PEAK_WIDTH)
    return lambda: torch.mm(x, w, out=out)


def flop(shape: Shape, rows: int) -> float:
    """Floating-point operations of the products; the first layer is computed once."""
    widths = [shape.inputs, *shape.hidden, shape.outputs]
    first, *later = (2 * 2 * a * b for a, b in pairwise(widths))
    return rows * (first + SAMPLES * sum(later))


def table(cells: list[dict[str, Any]]) -> str:
    """One line per network and number of rows."""
    lines = []
    for cell in cells:
        times = cell["times"]
        share = ratio([cell["flop"] / t for t in times["sobol"]], _peak_rates(times["peak"]))
        lines.append(
            [
                cell["network"],
                cell["rows"],
                *(results.figure(statistics.median(times[n])) for n in COLUMNS),
                results.figure(ratio(times["sobol"], times["forward"])),
                f"{100 * share:.0f} %",
            ]
        )
    headers = ["network", "rows", "one forward, ms", *(f"{n}, ms" for n in COLUMNS[1:])]
    return results.markdown([*headers, "sobol ÷ forward", "of the peak"], lines)


def _peak_rates(times: list[float]) -> list[float]:
    return [2 * PEAK_ROWS * PEAK_WIDTH**2 / t for t in times]


def memory(model: TabularModel) -> str:
    """Peak memory of this process after increasing numbers of samples."""
    x, lines = torch.randn(16, 784), []
    for samples in (100, 1000, 10_000):
        model.predict_rows(x, PredictOptions(samples=samples))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        lines.append(f"16 rows × {samples:6} samples: peak memory of the process {peak:.0f} MiB")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
