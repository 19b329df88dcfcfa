"""What 100 samples cost beside one deterministic forward pass, in interleaved runs.

    python -m benchmarks.engine

Prints medians over the repetitions and the ratio. Also the peak memory of one row with more and
more samples, which must not grow with them.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from models.config import NetworkConfig
from models.inference.bbb import BBBState
from models.likelihoods import Categorical
from models.networks import MLP
from models.posteriors import MeanFieldNormal
from models.prediction.engine import Engine, Fitted
from models.prediction.prediction import summarise
from models.targets import ClassTarget

HIDDEN = (1200, 1200)
REPETITIONS = 30


def build() -> tuple[Engine, Fitted]:
    """An untrained 784-1200-1200-10 classifier: speed does not depend on the weights."""
    network = MLP.build(NetworkConfig(hidden=HIDDEN), 784, 10)
    loc = network.layout.flatten(network.init(torch.Generator().manual_seed(0)))
    state = BBBState(MeanFieldNormal(loc, torch.full_like(loc, -4.0)), {})
    return Engine(network, Categorical(10), ClassTarget(tuple(range(10)))), Fitted.of(state)


def interleave(runs: dict[str, Callable[[], object]], repetitions: int) -> dict[str, float]:
    """Median milliseconds of each, run in turns so that drifts of the machine hit all alike."""
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - started))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    engine, fitted = build()
    weights = engine.network.layout.unflatten(fitted.posterior.loc)

    def predict(x: Tensor, samples: int) -> None:
        for _, mixture in engine.mixtures(fitted, x, 1, samples):
            summarise(mixture, ())

    for rows in (1, 32):
        x = torch.randn(rows, 784, generator=torch.Generator().manual_seed(1))

        def forward(x: Tensor = x) -> None:
            with torch.inference_mode():
                engine.network(weights, x)

        def sampled(x: Tensor = x) -> None:
            predict(x, 100)

        medians = interleave({"forward": forward, "sampled": sampled}, arguments.repetitions)
        ratio = medians["sampled"] / medians["forward"]
        print(
            f"{rows:3} rows: one forward {medians['forward']:.2f} ms, "
            f"100 samples {medians['sampled']:.2f} ms, ratio {ratio:.1f}"
        )
    x = torch.randn(16, 784)
    for samples in (100, 1000, 10_000, 40_000):
        predict(x, samples)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"16 rows × {samples:6} samples: peak memory of the process {peak:.0f} MiB")


if __name__ == "__main__":
    main()
