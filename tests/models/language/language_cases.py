"""Small texts, and models of them."""

from typing import Any

import numpy as np
import torch

from models.config import (
    BBBConfig,
    LanguageConfig,
    MethodConfig,
    ModelConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.features.columns import ColumnProfile
from models.inference.registry import build_method
from models.language.model import BayesianLanguageModel
from models.language.text import Corpus
from models.language.text_problem import TextTask
from models.likelihoods import Categorical
from models.networks.sequences import LanguageModel
from models.randomness import generator
from models.training.recipe import resolve
from models.training.train import TrainingRun, train
from models.training.trainer import Trainer

SMALL = RecurrentConfig(kind="lstm", hidden=(5, 4))
STILL = TrainingConfig(  # a rate that moves no float32
    epochs=1, batch_size=3, optimizer="sgd", learning_rate=1e-30, schedule="constant"
)
BRIEF = TrainingConfig(epochs=2, batch_size=4)
PROFILE = ColumnProfile(name="text", type="text")


def random_lines(count: int, words: str = "abcde", seed: int = 0) -> list[str]:
    """Lines of independent words, up to seven each."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(list(words), random.integers(0, 8))) for _ in range(count)]


def column(lines: list[str]) -> dict[str, np.ndarray]:
    return {"text": np.array([*lines, None], dtype=object)[:-1]}


def random_corpus(num_tokens: int, length: int, streams: int, steps: int) -> Corpus:
    tokens = torch.randint(num_tokens, (length,), generator=generator(3, "corpus"))
    return Corpus.of(tokens.tolist(), streams).whole_windows(steps)


def trainer(  # noqa: PLR0917 - what a run is made of
    method: MethodConfig,
    corpus: Corpus,
    steps: int,
    training: TrainingConfig = STILL,
    num_tokens: int = 7,
    score: Any = None,
) -> Trainer:
    """A fresh run on a corpus."""
    network = LanguageModel.build(SMALL, num_tokens)
    bound: Any = build_method(method, network, Categorical(num_tokens), corpus.num_targets)
    state = bound.init(generator(1, "init"))
    return Trainer(TextTask(network, corpus, steps), training, bound, state, score)


def trained(
    lines: list[str],
    method: MethodConfig | None = None,
    training: TrainingConfig = BRIEF,
    **options: Any,
) -> BayesianLanguageModel:
    """A model by the recipe; `options` are of `TrainingRun`."""
    asked = ModelConfig(
        target="text",
        method=method or BBBConfig(),
        network=SMALL,
        training=training,
        pruning=(0.5,) if method is None else None,
        language=LanguageConfig(steps=6),
    )
    config = resolve(asked, [PROFILE], len(lines))
    return train(column(lines), {"text": "text"}, config, TrainingRun(**options))
