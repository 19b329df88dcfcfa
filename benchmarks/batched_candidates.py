"""What candidates that are trained as one batched program could save at most.

    python -m benchmarks.batched_candidates [--rounds 5] [--steps 40] [--candidates 3]

The members of all candidates are one stack of one shape: one product per layer, one pass over the
weights and one optimiser step for all of them. That is the best case; candidates of other widths
or inputs need products of their own. Seconds of one thread, interleaved, for the same steps:
as one program ÷ one candidate after the other.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch

from benchmarks import results
from benchmarks.interleaving import interleave, ratio
from models.config import BBBConfig, GaussianPriorConfig, MLPConfig, PartConfig, TrainingConfig
from models.features.rows import Rows
from models.fitting.row_task import RowTask
from models.inference.registry import build_method
from models.likelihoods import HeteroscedasticGaussian
from models.networks import build_network
from models.networks.network import Inputs
from models.randomness import generator
from models.training.trainer import Trainer

BATCH, MEMBERS = 128, 3  # members of a candidate: one for each fold
SHAPES = ((13, ()), (13, (64, 64)), (78, (64, 64)), (78, (128, 128)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--candidates", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = [measure(*shape, arguments) for shape in SHAPES]
    print(results.markdown(["network", "apart, ms per step", "as one", "ratio"], lines))


def measure(inputs: int, hidden: tuple[int, ...], arguments: argparse.Namespace) -> list[str]:
    """Milliseconds for a step of all candidates, apart and as one program."""
    count, steps = arguments.candidates, arguments.steps
    runs: dict[str, Callable[[], float]] = {
        "apart": partial(seconds, inputs, hidden, MEMBERS, steps, count),
        "as one": partial(seconds, inputs, hidden, MEMBERS * count, steps, 1),
    }
    for run in runs.values():
        run()  # the first one takes longer
    times = interleave(runs, dict.fromkeys(runs, arguments.rounds))
    name = "-".join(map(str, (inputs, *hidden, 2)))
    milliseconds = [results.figure(1e3 * statistics.median(t) / steps) for t in times.values()]
    return [name, *milliseconds, results.figure(ratio(times["as one"], times["apart"]), 2)]


def seconds(inputs: int, hidden: tuple[int, ...], members: int, steps: int, times: int) -> float:
    """Seconds of the processor for so many trainings of these members."""
    trainers = [trainer(inputs, hidden, members, steps) for _ in range(times)]
    started = time.process_time()
    for one in trainers:
        one.run()
    return time.process_time() - started


def trainer(inputs: int, hidden: tuple[int, ...], members: int, steps: int) -> Trainer:
    x = torch.rand(BATCH, inputs, generator=generator(0, "rows"))
    weights = (torch.arange(BATCH)[:, None] % MEMBERS != torch.arange(members) % MEMBERS).float()
    part = PartConfig(members=members, hidden=hidden, kl_weight=0.1)
    network = build_network(MLPConfig(hidden=hidden, parts=(part,)), Inputs(inputs), 2)
    config = BBBConfig(prior=GaussianPriorConfig(sigma="per_input"))
    method = build_method(config, network, HeteroscedasticGaussian(), BATCH)
    state = method.init(generator(0, "init"))
    training = TrainingConfig(epochs=steps, batch_size=BATCH, learning_rate=1e-3)
    return Trainer(RowTask(Rows(x, x.sum(1), weights)), training, method, state)


if __name__ == "__main__":
    main()
