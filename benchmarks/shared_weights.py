"""Training steps of networks whose positions or steps share weights, beside deterministic ones.

    python -m benchmarks.shared_weights [--only cnn lstm] [--steps 30] [--rounds 5]
                                        [--profile lstm]

`cnn`: the default convolutions on images of 28 × 28 pixels, batches of 128. `lstm`: a language
model, embedding and two layers of 100 units, 10,000 tokens, windows of 10 steps of 20 texts. One
thread, random data, the loop of a training with Adam; `fixed` and `auto` are the prior's scale.
Ratios are medians over interleaved rounds.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks import results
from benchmarks.interleaving import interleave, ratio
from core.process.freed_memory import keep_freed_memory
from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    GaussianPriorConfig,
    MethodConfig,
    MLEConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.features.rows import Rows
from models.fitting.loop import Task
from models.fitting.row_task import RowTask
from models.inference.registry import build_method
from models.language.text import Corpus
from models.language.text_problem import TextTask
from models.likelihoods import Categorical
from models.networks import Inputs, build_network
from models.networks.sequences import LanguageModel
from models.randomness import generator
from models.training.trainer import Trainer

DETERMINISTIC = "mle"
FIXED, LEARNED = GaussianPriorConfig(sigma=0.1), GaussianPriorConfig(sigma="auto")
METHODS: dict[str, MethodConfig] = {
    DETERMINISTIC: MLEConfig(kind="mle"),
    "weight, fixed": BBBConfig(prior=FIXED, estimator="weight"),
    "weight, auto": BBBConfig(prior=LEARNED, estimator="weight"),
    "local, fixed": BBBConfig(prior=FIXED, estimator="local"),
    "local, auto": BBBConfig(prior=LEARNED, estimator="local"),
}
# The recipe's: steps of a text cannot be drawn apart.
ESTIMATORS = {"cnn": ("local", "weight"), "lstm": ("weight",)}
BATCH, PIXELS, CLASSES = 128, 28, 10
TEXTS, WINDOW, TOKENS = 20, 10, 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=("cnn", "lstm"), default=["cnn", "lstm"])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", choices=("cnn", "lstm"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    if arguments.profile:
        print(breakdown(arguments.profile, arguments.steps))
        return
    lines = [
        [f"{network}, {name}", *figures]
        for network in arguments.only
        for name, figures in measure(network, arguments.steps, arguments.rounds).items()
    ]
    print(results.markdown(["network, method", "ms per step", f"÷ {DETERMINISTIC}"], lines))


def measure(network: str, steps: int, rounds: int) -> dict[str, list[str]]:
    """Milliseconds per step and ratio, by method."""
    runs: dict[str, Callable[[], float]] = {
        name: partial(seconds, network, config, steps)
        for name, config in METHODS.items()
        if name.startswith((DETERMINISTIC, *ESTIMATORS[network]))
    }
    for run in runs.values():
        run()
    times = interleave(runs, dict.fromkeys(runs, rounds))
    return {
        name: [
            results.figure(1e3 * statistics.median(own) / steps),
            results.figure(ratio(own, times[DETERMINISTIC])),
        ]
        for name, own in times.items()
    }


def seconds(network: str, config: MethodConfig, steps: int) -> float:
    """CPU seconds of an epoch of so many steps."""
    trainer = build_trainer(network, config, steps)
    started = time.process_time()
    trainer.run()
    return time.process_time() - started


def build_trainer(network: str, config: MethodConfig, steps: int) -> Trainer:
    training = TrainingConfig(
        epochs=1,
        batch_size=BATCH if network == "cnn" else TEXTS,
        learning_rate=1e-3,
        gradient_clip=10.0,
    )
    task: Task
    if network == "cnn":
        inputs = Inputs.of((1, PIXELS, PIXELS))
        built = build_network(ConvolutionalConfig(kind="cnn"), inputs, CLASSES)
        random = generator(0, "rows")
        images = torch.rand(steps * BATCH, inputs.width, generator=random)
        labels = torch.randint(CLASSES, (steps * BATCH,), generator=random)
        task = RowTask(Rows(images, labels))
    else:
        built = LanguageModel.build(RecurrentConfig(kind="lstm", hidden=(100, 100)), TOKENS)
        shape = (TEXTS, steps * WINDOW + 1)
        tokens = torch.randint(TOKENS, shape, generator=generator(0, "tokens"))
        task = TextTask(built, Corpus(tokens), WINDOW)
    method = build_method(config, built, Categorical(built.num_outputs), task.num_data)
    return Trainer(task, training, method, method.init(generator(0, "init")))


def breakdown(network: str, steps: int) -> str:
    """The profiler's table: operators by their own time."""
    trainer = build_trainer(network, METHODS[f"{ESTIMATORS[network][0]}, auto"], steps)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        trainer.run()
    return profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=20)


if __name__ == "__main__":
    main()
