"""Seconds per epoch of Bayes by Backprop, compared with a deterministic network.

    python -m benchmarks.training [--network 784-400-400-10] [--rows 60000] [--data FOLDER]
                                  [--rounds 5] [--threads 2] [--clock wall|cpu] [--return-memory]
                                  [--profile "bbb local, auto"] [--methods mle "bbb local, auto" …]

Every method uses the same loop (`models.training.trainer.Trainer`) with the recipe's clipping and
checks, in interleaved runs. The first line is plain torch without these (`nn.Sequential`, fused
Adam); it shows that the loop itself is not slow. The ratio to the deterministic network (`mle`) is
the median of the rounds' ratios. On a busy machine, `--threads 1 --clock cpu` counts CPU seconds.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from benchmarks import data, results
from benchmarks.interleaving import Times, interleave, ratio
from benchmarks.shapes import Shape
from core.process.freed_memory import keep_freed_memory
from models.config import (
    BBBConfig,
    GaussianPriorConfig,
    KLConfig,
    MethodConfig,
    MLEConfig,
    MLPConfig,
    ScaleMixturePriorConfig,
    TrainingConfig,
)
from models.features.rows import Rows, batches
from models.fitting.row_task import RowTask
from models.inference.precision import EXACT, Products
from models.inference.registry import build_method
from models.likelihoods import Categorical, HeteroscedasticGaussian, Likelihood
from models.networks import MLP
from models.randomness import generator
from models.training.trainer import Trainer

Clock = Callable[[], float]
Configs = dict[str, MethodConfig]

PLAIN, DETERMINISTIC = "plain torch", "mle"
BATCH, RATE, CLIP = 128, 1e-3, 10.0
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
PRIORS = {
    "fixed": GaussianPriorConfig(sigma=0.1),
    "auto": GaussianPriorConfig(),
    "mixture": ScaleMixturePriorConfig(kind="scale_mixture"),
}


@dataclass(frozen=True)
class Problem:
    """A network's widths and its training rows."""

    shape: Shape
    rows: Rows

    @property
    def widths(self) -> tuple[int, ...]:
        return self.shape.inputs, *self.shape.hidden, self.shape.outputs

    @property
    def likelihood(self) -> Likelihood:
        if self.shape.task == "regression":
            return HeteroscedasticGaussian()
        return Categorical(self.shape.outputs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="784-400-400-10")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--data", type=Path, help="MNIST instead of noise: see benchmarks/data.py")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--return-memory", action="store_true", help="as glibc does by default")
    parser.add_argument("--methods", nargs="+", choices=list(contenders()), help="all by default")
    parser.add_argument("--profile", choices=list(contenders()), help="the method to profile")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if not arguments.return_memory:
        keep_freed_memory()  # as the worker does
    shape = Shape.parse(arguments.network)
    rows = mnist(arguments.data) if arguments.data else generated(shape, arguments.rows)
    problem = Problem(shape, rows)
    if arguments.profile:
        print(breakdown(problem, contenders()[arguments.profile]))
        return
    methods = {DETERMINISTIC, *(arguments.methods or contenders())}
    configs = {name: config for name, config in contenders().items() if name in methods}
    times = measure(problem, configs, CLOCKS[arguments.clock], arguments.rounds)
    settings = vars(arguments) | {"data": arguments.data is not None}
    content = {"machine": results.machine(), "settings": settings, "seconds": times}
    print(table(times, len(rows)), results.save("training", content), sep="\n\n")


def contenders() -> dict[str, MethodConfig]:
    """The methods: the deterministic network, and each estimator with each prior."""
    kl = KLConfig(weight="uniform")
    bayesian = {
        f"bbb {estimator}, {name}": BBBConfig(estimator=estimator, prior=prior, kl=kl)
        for estimator in ("local", "weight")
        for name, prior in PRIORS.items()
    }
    return {DETERMINISTIC: MLEConfig(kind="mle"), **bayesian}


def generated(shape: Shape, num_rows: int) -> Rows:
    """Rows of noise, with targets computed from it. Speed does not depend on the values."""
    inputs = torch.rand(num_rows, shape.inputs, generator=generator(0, "rows"))
    if shape.task == "regression":
        return Rows(inputs, inputs.sum(1) - shape.inputs / 2)
    return Rows(inputs, inputs[:, : shape.outputs].argmax(1))


def mnist(root: Path) -> Rows:
    """The training images with mean 0 and deviation 1, as the service encodes them."""
    images, labels = data.mnist(root, "train")
    pixels = torch.from_numpy(images.reshape(len(images), -1)).float()
    inputs = (pixels - pixels.mean()) / pixels.std()
    return Rows(inputs, torch.from_numpy(labels).long())


def measure(problem: Problem, configs: Configs, clock: Clock, rounds: int) -> Times:
    """Seconds per epoch by method. A short untimed run comes first, because it takes longer."""
    short = Problem(problem.shape, problem.rows[slice(0, 20 * BATCH)])
    for run in runs(short, configs, clock).values():
        run()
    timed = runs(problem, configs, clock)
    return interleave(timed, dict.fromkeys(timed, rounds))


def runs(problem: Problem, configs: Configs, clock: Clock) -> dict[str, Callable[[], float]]:
    ours = {name: partial(epoch, problem, config, clock) for name, config in configs.items()}
    return {PLAIN: partial(plain_epoch, problem, clock), **ours}


def epoch(problem: Problem, config: MethodConfig, clock: Clock) -> float:
    """Seconds of one epoch from a fresh state."""
    trainer = build_trainer(problem, config)
    started = clock()
    trainer.run()
    return clock() - started


def build_trainer(problem: Problem, config: MethodConfig, products: Products = EXACT) -> Trainer:
    inputs, *hidden, outputs = problem.widths
    network = MLP.build(MLPConfig(hidden=tuple(hidden)), inputs, outputs)
    method = build_method(config, network, problem.likelihood, len(problem.rows), products)
    state = method.init(generator(0, "init")).to(problem.rows.inputs.device)
    training = TrainingConfig(epochs=1, batch_size=BATCH, learning_rate=RATE, gradient_clip=CLIP)
    return Trainer(RowTask(problem.rows), training, method, state)


def plain_epoch(problem: Problem, clock: Clock) -> float:
    """One epoch of the same network in plain torch, with torch's fastest Adam."""
    layers: list[nn.Module] = []
    for a, b in pairwise(problem.widths):
        layers += [nn.Linear(a, b), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, fused=True)
    rows, likelihood = problem.rows, problem.likelihood
    started = clock()
    for index in batches(len(rows), BATCH, 0, 0):
        batch = rows[index]
        loss = -likelihood.log_prob(network(batch.inputs), batch.targets, {}).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return clock() - started


def breakdown(problem: Problem, config: MethodConfig, steps: int = 100) -> str:
    """The profiler's table: operators by their own time, over some steps."""
    trainer = build_trainer(Problem(problem.shape, problem.rows[slice(0, steps * BATCH)]), config)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        trainer.run()
    return profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=30)


def table(times: Times, num_rows: int) -> str:
    steps = -(-num_rows // BATCH)
    lines = [
        [
            name,
            results.figure(statistics.median(seconds)),
            results.figure(1000 * statistics.median(seconds) / steps),
            results.figure(ratio(seconds, times[DETERMINISTIC])),
            results.figure(ratio(seconds, times[PLAIN])),
        ]
        for name, seconds in times.items()
    ]
    headers = ["method", "s per epoch", "ms per step", f"÷ {DETERMINISTIC}", f"÷ {PLAIN}"]
    return results.markdown(headers, lines)


if __name__ == "__main__":
    main()
