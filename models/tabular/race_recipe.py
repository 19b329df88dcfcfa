"""The settings of trainings whose recipe is chosen on the rows, by members that leave out folds.

What is chosen is not set here: the encoding of the inputs, the widths, the weight of the KL and the
shape of the target (`models.tabular.race`).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from models.config import (
    BBBConfig,
    Effort,
    GaussianPriorConfig,
    MLPConfig,
    ModelConfig,
    Task,
)
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile
from models.inference.method_recipe import choose_pruning
from models.tabular.candidates import plan_budget

_FOLDS: Mapping[Effort, int] = {"quick": 3, "standard": 4, "thorough": 8}
_ROWS_PER_FOLD = 8  # at least: small tables have fewer folds
# At most: patience ends a fit as soon as its score no longer rises. With 60 and 120, fits of rows
# with uneven noise ended while scales were still falling (docs/verification.md has the figures).
_EPOCHS: Mapping[Effort, int] = {"quick": 180, "standard": 280, "thorough": 400}
_PATIENCE: Mapping[Effort, int] = {"quick": 8, "standard": 10, "thorough": 30}
_STEPS: Mapping[Effort, int] = {"quick": 3_000, "standard": 12_000, "thorough": 40_000}
_BATCHES = 14  # per epoch, within the bounds of a batch
_MIN_BATCH, _MAX_BATCH = 32, 1_024
_RATE, _WARMUP_STEPS, _CLIP = 6e-3, 50, 5.0
_AVERAGING = (10, 60)  # steps: about an epoch
_FINE_TUNE = 0.015  # epochs of a pruned variant, as a share of the most of a fit
_TUNING_STEPS = 2_000  # of a pruned variant, at most

# A request that gives one of these settings and no effort is fitted once. With an effort, epochs
# and patience are those of each candidate; rate, optimiser and schedule always are.
_OF_A_FIT = (
    "epochs",
    "patience",
    "stopping_fraction",
    "calibration_fraction",
    "refit",
)


def is_race(
    config: ModelConfig, task: Task, columns: Mapping[str, ColumnProfile], *, once: bool = False
) -> bool:
    """Whether the recipe is chosen on the rows: tables whose request leaves it open.

    Raises:
        InvalidData: if folds or an effort are given, and nothing is left to choose.
    """
    if task not in ("regression", "classification"):
        return _unless_asked(config, f"a {task} is not fitted in folds")
    if once:
        return _unless_asked(config, "a comparison fits each method once")
    fixed = next(_fixed(config, columns), None)
    if fixed is not None:
        return _unless_asked(config, f"{fixed} leaves nothing to choose")
    return _is_asked(config) or next(_of_a_fit(config), None) is None


def explain_single_fit(
    config: ModelConfig, resolved: ModelConfig, columns: Mapping[str, ColumnProfile]
) -> Iterator[str]:
    """A note for a table that a setting of the request fits once: which one, and what it costs.

    Args:
        config: as the request has it.
        resolved: the same with every default filled in.
    """
    if resolved.task not in ("regression", "classification") or resolved.training.folds is not None:
        return
    lost = "settings were not compared on the rows"
    if resolved.task == "regression" and config.likelihood is None and config.support is None:
        lost += ", and no bounds of the target were looked for"
    fixed, of_a_fit = next(_fixed(config, columns), None), next(_of_a_fit(config), None)
    if fixed is not None:
        yield f"{fixed} is given, so one model was fitted: {lost}"
    elif of_a_fit is not None:
        yield f"{of_a_fit} is given without training.effort, so one model was fitted: {lost}"


def _of_a_fit(config: ModelConfig) -> Iterator[str]:
    """The settings that fit once, unless an effort is given."""
    if config.method != BBBConfig():
        yield "method"
    for name in _OF_A_FIT:
        if getattr(config.training, name) is not None:
            yield f"training.{name}"


def _fixed(config: ModelConfig, columns: Mapping[str, ColumnProfile]) -> Iterator[str]:
    """The settings that leave nothing to choose."""
    network, method = config.network, config.method
    if not isinstance(network, MLPConfig):
        yield f"network.kind {network.kind!r}"
    elif network.hidden is not None:
        yield "network.hidden"
    elif network.parts is not None:
        yield "network.parts"
    if not isinstance(method, BBBConfig):
        yield f"method.kind {method.kind!r}"
    elif method.kl.weight is not None:
        yield "method.kl.weight"
    if config.members is not None:
        yield "members"
    features = [f.type for f in config.features] if config.features else []
    types: list[str] = [*features] or [profile.type for profile in columns.values()]
    if "tensor" in types:
        yield "a tensor feature"


def _is_asked(config: ModelConfig) -> bool:
    return config.training.folds is not None or config.training.effort is not None


def _unless_asked(config: ModelConfig, reason: str) -> bool:
    """False, for a request that names neither folds nor an effort."""
    if _is_asked(config):
        name = "effort" if config.training.effort is not None else "folds"
        raise InvalidData(
            f"{name} chooses the recipe on the rows, but {reason}: leave one of them out",
            f"/training/{name}",
        )
    return False


def resolve_race(config: ModelConfig, num_rows: int) -> ModelConfig:
    """The configuration of a race: what it chooses stays None.

    `num_rows` counts all rows, held-out ones included.
    """
    training = config.training
    effort = training.effort or "standard"
    learned = max(2, round(num_rows * (1 - training.validation_fraction)))
    folds = training.folds or max(2, min(_FOLDS[effort], learned // _ROWS_PER_FOLD))
    raced = min(learned, plan_budget(effort, learned).race_rows)
    batch = training.batch_size or _batch(raced)
    per_epoch = -(-raced // batch)
    epochs = training.epochs or max(4, min(_EPOCHS[effort], _STEPS[effort] // per_epoch))
    tune = training.fine_tune_epochs
    resolved = replace(
        training,
        effort=effort,
        folds=folds,
        epochs=epochs,
        batch_size=batch,
        optimizer=training.optimizer or "adam",
        schedule=training.schedule or "constant",
        learning_rate=training.learning_rate or _RATE,
        warmup_steps=training.warmup_steps or _WARMUP_STEPS,
        averaging_steps=training.averaging_steps
        or min(max(per_epoch, _AVERAGING[0]), _AVERAGING[1]),
        gradient_clip=training.gradient_clip or _CLIP,
        stopping_fraction=0.0,
        calibration_fraction=0.0,
        patience=training.patience or _PATIENCE[effort],
        refit=False,
        fine_tune_epochs=_tuning(epochs, -(-learned // batch)) if tune is None else tune,
    )
    assert isinstance(config.method, BBBConfig)
    method, prior = config.method, config.method.prior
    if prior == GaussianPriorConfig():
        prior = GaussianPriorConfig(sigma="per_input")
    kl = replace(method.kl, warmup_epochs=method.kl.warmup_epochs or 0)
    method = replace(method, estimator=method.estimator or "weight", prior=prior, kl=kl)
    return replace(config, training=resolved, method=method, pruning=choose_pruning(config))


def _tuning(epochs: int, per_epoch: int) -> int:
    """Epochs of a pruned variant, on all rows."""
    return max(1, min(math.ceil(_FINE_TUNE * epochs), _TUNING_STEPS // per_epoch))


def _batch(num_rows: int) -> int:
    """A power of two, so that an epoch has about `_BATCHES` mini-batches."""
    wanted = 2 ** round(math.log2(max(1.0, num_rows / _BATCHES)))
    return min(max(wanted, _MIN_BATCH), _MAX_BATCH)
