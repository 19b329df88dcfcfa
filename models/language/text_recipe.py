"""The recommended settings of language models, and the settings that they refuse."""

import math
from dataclasses import replace

from models.config import (
    BBBConfig,
    ConvolutionalConfig,
    LanguageConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    NetworkConfig,
    RecurrentConfig,
    TrainingConfig,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.inference.method_recipe import choose_prior, choose_pruning, no_local_estimator
from models.inference.registry import method_of

MIN_LINES = 3
NEEDED = "give at least one to learn from, one to choose the epoch and one to score"

# Two epochs of Penn Treebank, test perplexity (benchmarks/language.py): 139 by mle, 136 by bbb.
# SGD with clipped gradients, as in all publications on this corpus, is far better than Adam, whose
# steps for rare words are as large as for all others.
_HIDDEN = (100, 100)
_STREAMS, _STEPS = 20, 10
_SGD_RATE, _ADAM_RATE, _CLIP = 4.0, 3e-3, 0.25
# Most of a vocabulary are rare words. A learned scale would shrink with their embeddings before the
# text has shown their use: a test perplexity of 583 after an epoch of Penn Treebank (mle: 181).
_PRIOR_SIGMA = 1.0
_LINES = 200_000  # read in all epochs together, which are 10 to 100
_FINE_TUNE = 0.15  # epochs of a pruned variant, as a share of the fit's


def resolve_language(config: ModelConfig, target: ColumnProfile, num_rows: int) -> ModelConfig:
    """The configuration with every None replaced by what the recipe recommends.

    Raises:
        InvalidData: naming the column or setting that cannot work, with a JSON pointer.
    """
    _check(config, target, num_rows)
    training = _training(config.training, num_rows)
    language = config.language or LanguageConfig()
    return replace(
        config,
        features=(),
        task="language_model",
        likelihood="categorical",
        network=_network(config.network),
        method=_method(config.method),
        training=training,
        pruning=choose_pruning(config),
        language=replace(language, steps=language.steps or _STEPS),
    )


def _check(config: ModelConfig, target: ColumnProfile, num_rows: int) -> None:
    if config.members is not None:
        raise InvalidData(
            "a language model has no members: use method 'ensemble', or leave members out",
            "/members",
        )
    if target.type != "text":
        raise InvalidData(
            f"column {target.name!r} is of type {target.type}; a language model learns from one of "
            "type text: upload the lines as text/plain",
            "/target",
        )
    if num_rows < MIN_LINES:
        raise InvalidData(f"{num_rows} lines are too few: {NEEDED}", "/dataset")
    for value, path in (
        (config.features, "/features"),
        (config.support, "/target"),
        (config.weight, "/weight"),
        (config.training.groups, "/training/groups"),
        (config.forecast, "/forecast"),
        (config.out_of_distribution, "/out_of_distribution"),
    ):
        if value:
            raise InvalidData("a language model reads only the target's text: leave it out", path)
    if config.likelihood not in (None, "categorical"):
        message = f"likelihood {config.likelihood!r} does not fit tokens; they take categorical"
        raise InvalidData(message, "/likelihood")


def _network(config: NetworkConfig) -> RecurrentConfig:
    match config:
        case RecurrentConfig():
            return config
        case MLPConfig(hidden=None):
            return RecurrentConfig(kind="lstm", hidden=_HIDDEN)
        case MLPConfig() | ConvolutionalConfig():
            raise InvalidData(
                f"network kind {config.kind!r} reads no text: take rnn, lstm or gru",
                "/network/kind",
            )


def _method(method: MethodConfig) -> MethodConfig:
    if not method_of(method).reads_texts:
        raise InvalidData(
            f"method {method.kind!r} cannot be fitted to text: take bbb, map, mle, mc_dropout or "
            "ensemble",
            "/method/kind",
        )
    if not isinstance(method, BBBConfig):
        return method
    if method.estimator == "local":
        raise no_local_estimator()
    prior, kl = choose_prior(method, _PRIOR_SIGMA), method.kl
    # the full KL from the first epoch on: a step on one of hundreds of windows moves σ little
    weight = "uniform" if kl.weight is None else kl.weight
    kl = replace(kl, weight=weight, warmup_epochs=kl.warmup_epochs or 0)
    return replace(method, estimator="weight", prior=prior, kl=kl)


def _training(config: TrainingConfig, num_rows: int) -> TrainingConfig:
    if not isinstance(config.split, str):
        raise InvalidData(
            "lines continue one another, so the last ones are held out: leave split out",
            "/training/split",
        )
    for name in ("calibration_fraction", "stopping_fraction"):
        if value := getattr(config, name):
            reason = "half of a text's held-out lines choose the epoch, and nothing is calibrated"
            raise InvalidData(f"{name} {value:g}: {reason}; leave it out", f"/training/{name}")
    if config.refit:
        raise InvalidData("language models are not fitted again to all lines", "/training/refit")
    epochs = config.epochs or min(100, max(10, _LINES // num_rows))
    optimizer = config.optimizer or "sgd"
    tune = config.fine_tune_epochs
    return replace(
        config,
        epochs=epochs,
        batch_size=config.batch_size or _STREAMS,
        optimizer=optimizer,
        learning_rate=config.learning_rate or (_SGD_RATE if optimizer == "sgd" else _ADAM_RATE),
        schedule=config.schedule or "cosine",
        gradient_clip=config.gradient_clip or _CLIP,
        split="last",
        stopping_fraction=0.0,  # half of the lines that are held out choose the epoch
        calibration_fraction=0.0,
        refit=False,
        patience=config.patience or max(1, epochs // 2),
        fine_tune_epochs=math.ceil(_FINE_TUNE * epochs) if tune is None else tune,
    )
