"""A small language model on Penn Treebank: test perplexity and seconds per epoch, by method.

    python -m benchmarks.language --data FOLDER [--methods mle mc_dropout bbb] [--epochs 2]

Two layers of 100 LSTM units, tied embedding, two epochs. Methods run one after the other. Each adds
its results to the stored ones. On a busy machine, compare CPU seconds.
"""

import argparse
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from benchmarks import data, results
from models.config import (
    BBBConfig,
    DropoutConfig,
    GaussianPriorConfig,
    LanguageConfig,
    MethodConfig,
    MLEConfig,
    ModelConfig,
    RecurrentConfig,
    ScaleMixturePriorConfig,
    TrainingConfig,
)
from models.features.columns import ColumnProfile
from models.fitting.loop import EpochResult
from models.inference.registry import build_method
from models.language.model import BayesianLanguageModel, evaluate, perplexity, stopping_score
from models.language.text import Corpus, Vocabulary
from models.language.text_problem import TextTask
from models.randomness import generator
from models.training.recipe import resolve
from models.training.trainer import Trainer

MIXTURE = ScaleMixturePriorConfig(kind="scale_mixture", pi=0.75, sigma1=0.001, sigma2=0.75)
METHODS: dict[str, MethodConfig] = {
    "mle": MLEConfig(kind="mle"),
    "mc_dropout": DropoutConfig(kind="mc_dropout", rate=0.1),
    "bbb": BBBConfig(prior=GaussianPriorConfig(sigma=1.0), initial_sigma=0.01),
    "bbb_mixture": BBBConfig(prior=MIXTURE, initial_sigma=0.01),
}
DEFAULT = ["mle", "mc_dropout", "bbb"]
# Chosen by test perplexity of models trained on a fifth of the text (see docs/method.md).
TRAINING = TrainingConfig(
    batch_size=20,
    optimizer="sgd",
    learning_rate=4.0,
    schedule="cosine",
    gradient_clip=0.25,
)
LANGUAGE = LanguageConfig(steps=10)
_STREAMS = 10  # of the test text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder: see benchmarks/data.py")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=["mle", "mc_dropout", "bbb"]
    )
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fraction", type=float, default=1.0, help="share of the text")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for name in arguments.methods:
        found = measure(arguments.data, METHODS[name], arguments.epochs, arguments.fraction)
        stored = results.load("language") | {"machine": results.machine()}
        stored[name] = {**vars(arguments), "data": "ptb", "methods": name, **found}
        results.save("language", stored)
        print(table(stored), flush=True)


def measure(folder: Path, method: MethodConfig, epochs: int, fraction: float) -> dict[str, Any]:
    """Train on PTB, and evaluate the test text after every epoch."""
    lines = data.ptb(folder, "train")
    lines = lines[: round(fraction * len(lines))]
    model = skeleton(lines, method, epochs)
    clock = Clock(model, model.corpus(data.ptb(folder, "test"), _STREAMS), epochs)
    steps = LANGUAGE.steps or 1
    streams = TRAINING.batch_size or 1
    corpus = model.corpus(lines, streams).whole_windows(steps)
    bound = build_method(model.config.method, model.network, model.likelihood, corpus.num_targets)
    state = bound.init(generator(0, "init"))
    task = TextTask(model.network, corpus, steps)
    run = Trainer(task, model.config.training, bound, state)
    clock.follow(run)
    run.run(clock.on_epoch)
    return clock.found


def skeleton(lines: list[str], method: MethodConfig, epochs: int) -> BayesianLanguageModel:
    """The model before training."""
    request = ModelConfig(
        target="text",
        network=RecurrentConfig(kind="lstm", hidden=(100, 100)),
        method=method,
        training=TrainingConfig(**{**vars(TRAINING), "epochs": epochs}),
        pruning=() if method.kind == "bbb" else None,
        language=LANGUAGE,
    )
    config = resolve(request, [ColumnProfile(name="text", type="text")], len(lines))
    vocabulary = Vocabulary.fit(lines, config.language or LANGUAGE)
    return BayesianLanguageModel(
        config=config, vocabulary=vocabulary, variants_by_prune={}, default_seed=0
    )


@dataclass
class Clock:
    """Records test perplexity and seconds of each epoch; after the last also by Monte Carlo."""

    model: BayesianLanguageModel
    test: Corpus
    epochs: int
    found: dict[str, Any] = field(default_factory=lambda: {"epochs_done": []})

    def follow(self, run: Trainer) -> None:
        self.run, self.wall, self.cpu = run, time.perf_counter(), time.process_time()

    def on_epoch(self, result: EpochResult) -> None:
        wall, cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu
        state, network = self.run.state.current.detach(), self.model.network
        at_mean = perplexity(stopping_score(network, state, self.test))
        epoch = {"train_nll": result.nll, "kl": result.kl, "perplexity_posterior_mean": at_mean}
        self.found["epochs_done"].append({**epoch, "seconds": wall, "cpu_seconds": cpu})
        print(self.found["epochs_done"][-1], flush=True)
        if result.epoch == self.epochs:
            self.found |= {"test": evaluate(network, state, self.test, seed=0)}
        self.wall, self.cpu = time.perf_counter(), time.process_time()


def table(stored: dict[str, Any]) -> str:
    """One line per method; the ratio is CPU seconds ÷ those of `mle`."""
    lines = []
    base = _cpu_seconds(stored.get("mle"))
    for name in METHODS:
        if name not in stored:
            continue
        done, cpu = stored[name]["epochs_done"], _cpu_seconds(stored[name])
        perplexities = [results.figure(e["perplexity_posterior_mean"], 4) for e in done]
        sampled = results.figure(stored[name]["test"]["perplexity"], 4)
        seconds = results.figure(sum(e["seconds"] for e in done) / len(done))
        ratio = results.figure(cpu / base, 2) if cpu and base else "–"
        lines.append([name, " → ".join(perplexities), sampled, seconds, results.figure(cpu), ratio])
    headers = [
        "method",
        "test perplexity after each epoch, mean weights",
        "30 samples",
        "s/epoch",
        "CPU s/epoch",
        "× mle",
    ]
    return results.markdown(headers, lines)


def _cpu_seconds(run: dict[str, Any] | None) -> float | None:
    """The mean over the epochs, or None."""
    done = [epoch["cpu_seconds"] for epoch in (run or {}).get("epochs_done", [])]
    return sum(done) / len(done) if done else None


if __name__ == "__main__":
    main()
