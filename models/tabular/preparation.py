"""Makes the training problem of a table: drops, splits and encodes its rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import (
    BBBConfig,
    LikelihoodConfig,
    MethodConfig,
    MLPConfig,
    ModelConfig,
    OutOfDistributionConfig,
    SplitBy,
    SplitTime,
)
from models.exceptions import InvalidData
from models.features.class_notes import notes_on_classes
from models.features.class_weights import BALANCED_NOTE, with_class_weights
from models.features.columns import Columns
from models.features.effects import FOLDS as EFFECT_FOLDS
from models.features.effects import target_scores
from models.features.feature_encoder import FeatureEncoder
from models.features.folds import Folds, assign_folds
from models.features.groups import Groups
from models.features.rows import Rows, evenly_spread
from models.features.splits import Division, class_numbers, divide_rows
from models.features.target_shapes import check_support, describe_shape, describe_target
from models.features.targets import ClassTarget, NumberTarget, Target
from models.features.usable import UsableRows, notes_on_weights
from models.out_of_distribution.features import FeatureScores
from models.randomness import derive_seed
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.problem import RowProblem
from models.tabular.recipe import MIN_ROWS
from models.tabular.scale_ranking import MAX_ROWS, rank
from models.tabular.shapes import DEFAULT_SHAPE
from models.training.card import RowProfile, summarise_columns
from models.training.distributed import ALONE, Ranks


@dataclass(frozen=True)
class Assigned:
    """The sets and folds of usable rows, where they are not chosen here."""

    division: Division
    folds: Int[np.ndarray, "rows"]


def prepare(
    columns: Columns,
    types: Mapping[str, str],
    config: ModelConfig,
    ranks: Ranks = ALONE,
    assigned: Assigned | None = None,
) -> RowProblem:
    """Split and encode the rows of a table.

    Encoders and target scale are fitted to the training rows and to those that choose the epoch,
    because a refit learns from both. The classes are those of all rows, so that a rare class that
    is held out stops neither training nor scoring. Classes that no set has are noted.

    Args:
        assigned: sets and folds that are used instead of those that `config` gives.

    Raises:
        InvalidData: if too few rows have a target and a weight above 0, a weight is missing or
            negative, or nothing varies.
    """
    usable = UsableRows.of(columns, config.target, config.weight)
    if len(usable.index) < MIN_ROWS:
        weighed = "" if config.weight is None else " and a weight above 0"
        raise InvalidData(
            f"{len(usable.index)} rows have a target{weighed}; at least {MIN_ROWS} are needed",
            "/dataset",
        )
    columns = _side(columns, usable.index)
    key = _split_key(columns, config)
    class_target = _fit_classes(config, types, columns)
    numbers = None if class_target is None else class_numbers(columns[config.target])
    split = (
        divide_rows(config.training, len(usable.index), key, numbers)
        if assigned is None
        else assigned.division
    )
    notes = [*usable.notes, *_notes_on(split, config)]
    if class_target is not None and numbers is not None:
        notes += notes_on_classes(class_target.classes, numbers, split)
    weights = row_weights(config, columns)
    if weights is not None:
        notes += notes_on_weights(weights, weights[split.calibration])
    places = np.union1d(split.training, split.stopping)
    learned = _side(columns, places)
    fit_weights = fitted_weights(config, weights, numbers, places)
    learned_weights = None if fit_weights is None else fit_weights[places]
    classes = None if class_target is None else class_target.encode(learned[config.target]).numpy()
    of_row = (
        _assign_folds(config, learned, classes, None if key is None else key[places])
        if assigned is None
        else torch.from_numpy(assigned.folds[places])
    )
    encoder, inputs = _encode(config, types, learned, classes, of_row, learned_weights)
    target = class_target or _fit_number(config, types, learned, columns)
    model = _skeleton(encoder, config, target, notes)
    scores = FeatureScores.begin(encoder, types, learned, false_alarm_rate(config), learned_weights)
    model = replace(model, unlike=scores, groups=_fit_groups(config, types, columns))
    rows = _with_targets(model, learned, inputs, learned_weights)
    training, stopping = (
        rows[torch.from_numpy(np.searchsorted(places, part))]
        for part in (split.training, split.stopping)
    )
    calibration = _rows(model, columns, split.calibration, fit_weights)
    refit = config.training.refit
    fitted = np.union1d(split.training, split.stopping) if refit else split.training
    profile = RowProfile(
        learned=len(fitted),
        stopping=0 if refit else len(split.stopping),
        calibration=len(split.calibration),
        held_out=len(split.scores),
        columns=summarise_columns(
            _side(columns, fitted),
            model.encoder,
            config.target,
            _target_type(model.target, types[config.target]),
            model.target.classes if isinstance(model.target, ClassTarget) else (),
        ),
    )
    problem = RowProblem(
        model,
        training,
        stopping if len(stopping) else None,
        calibration if len(calibration) else None,
        _rows(model, columns, split.scores, weights),
        profile,
        columns,
        ranks,
    )
    if config.training.folds is None:
        return problem
    own = {f.name: getattr(problem, f.name) for f in fields(problem)}
    return FoldProblem(**own, folds=Folds(of_row, config.training.folds))


def _fit_classes(
    config: ModelConfig, types: Mapping[str, str], whole: Columns
) -> ClassTarget | None:
    """The classes of all rows; None if the target is a number."""
    name = config.target
    if config.task == "regression":
        return None
    return ClassTarget.fit(whole[name], boolean=types[name] == "boolean")


def _fit_groups(config: ModelConfig, types: Mapping[str, str], whole: Columns) -> Groups | None:
    """The groups of all rows."""
    name = config.training.groups
    return None if name is None else Groups.fit(name, types[name], whole[name])


def _assign_folds(
    config: ModelConfig,
    learned: Columns,
    classes: Int[np.ndarray, "rows"] | None,
    key: np.ndarray | None,
) -> Int[Tensor, "rows"]:
    """The fold of each learning row: the configured ones, or some for effects of levels.

    Args:
        key: the groups or times of the rows.
    """
    folds = replace(config.training, folds=config.training.folds or EFFECT_FOLDS)
    return assign_folds(folds, len(learned[config.target]), key, classes)


def _notes_on(split: Division, config: ModelConfig) -> Iterator[str]:
    """Notes on configured sets of rows that are empty."""
    rows = sum(map(len, (split.training, split.stopping, split.calibration, split.scores)))
    if config.training.calibration_fraction and not len(split.calibration):
        yield f"not calibrated: {rows} rows, or their groups, leave too few for it"
    if config.training.stopping_fraction and not len(split.stopping):
        yield f"no early stopping: {rows} rows, or their groups, leave none for it"


def _split_key(columns: Columns, config: ModelConfig) -> np.ndarray | None:
    """The column of a split by group or time."""
    match config.training.split:
        case SplitBy(by=name) | SplitTime(time=name):
            return columns[name]
    return None


def _side(columns: Columns, index: np.ndarray) -> Columns:
    return {name: values[index] for name, values in columns.items()}


def _skeleton(
    encoder: FeatureEncoder, config: ModelConfig, target: Target, notes: Sequence[str]
) -> TabularModel:
    notes = [*notes, *notes_on_objective(config.method)]
    if config.training.class_weight == "balanced":
        notes.append(BALANCED_NOTE)
    if isinstance(target, NumberTarget) and target.is_shaped and config.likelihood != "auto":
        notes.append(describe_shape(target))
    if constant := encoder.constant_columns():
        names = ", ".join(constant)
        notes.append(f"columns that are constant or have only rare levels were left out: {names}")
    seed = derive_seed(config.training.seed, "prediction") % 2**31
    return TabularModel(
        config=config,
        encoder=encoder,
        target=target,
        variants_by_prune={},
        default_seed=seed,
        notes=tuple(notes),
    )


def _encode(  # noqa: PLR0917 - the learned rows and what is known of each
    config: ModelConfig,
    types: Mapping[str, str],
    learned: Columns,
    classes: Int[np.ndarray, "rows"] | None,
    folds: Int[Tensor, "rows"],
    weights: Float[np.ndarray, "rows"] | None,
) -> tuple[FeatureEncoder, Float[Tensor, "rows compact"]]:
    """The encoder of the learning rows, and these rows encoded.

    It has pieces where parts of a network may read them. Inputs that are made of targets are those
    of rows in other folds.
    """
    features, network = config.features or (), config.network
    rate = false_alarm_rate(config)
    has_parts = isinstance(network, MLPConfig) and network.parts is not None
    if not has_parts and config.training.folds is None:
        encoder = FeatureEncoder.fit(features, types, learned, rate=rate, weights=weights)
        return encoder, encoder.encode_inputs(learned)
    values = learned[config.target] if classes is None else classes
    scores = target_scores(values, classes=classes is not None, weights=weights)
    encoder = FeatureEncoder.fit(
        features,
        types,
        learned,
        pieces=True,
        targets=scores,
        rate=rate,
        weights=weights,
    )
    return encoder, encoder.encode_learned(learned, scores, folds.numpy(), weights)


def false_alarm_rate(config: ModelConfig) -> float:
    """The share of rows like those of training that may be flagged."""
    return (config.out_of_distribution or OutOfDistributionConfig()).false_alarm_rate


def notes_on_objective(method: MethodConfig) -> tuple[str, ...]:
    """A note for the model's card if the KL is tempered."""
    if not isinstance(method, BBBConfig) or method.kl.weight in (None, "uniform", "blundell", 1.0):
        return ()
    return (f"the KL has weight {method.kl.weight}: the objective is no ELBO",)


def _fit_number(
    config: ModelConfig, types: Mapping[str, str], learned: Columns, whole: Columns
) -> NumberTarget:
    """The target's scale and support, of several scales the one that suits a linear model."""
    name, weights = config.target, row_weights(config, learned)
    likelihood = DEFAULT_SHAPE if config.likelihood == "auto" else config.likelihood
    if not isinstance(likelihood, LikelihoodConfig):
        return NumberTarget.fit(learned[name], weights)
    if config.support is not None:
        check_support(whole[name], config.support)
    candidates = describe_target(learned[name], config.support, likelihood, weights)
    if config.likelihood == "auto":  # the race chooses the scale
        return candidates[0]
    rows = evenly_spread(len(learned[name]), MAX_ROWS)
    some = _side(learned, rows.numpy())
    # Without pieces, which a line does not need, and effects, which are made of these targets.
    some_weights = row_weights(config, some)
    encoder = FeatureEncoder.fit(config.features or (), types, some, weights=some_weights)
    inputs, seed = encoder.encode(some), config.training.seed
    return rank(candidates, inputs, some[name], seed, some_weights)[0][0]


def row_weights(config: ModelConfig, side: Columns) -> Float[np.ndarray, "rows"] | None:
    """The weights of rows, if the table has any."""
    return None if config.weight is None else side[config.weight].astype(np.float64)


def fitted_weights(
    config: ModelConfig,
    weights: Float[np.ndarray, "rows"] | None,
    numbers: Int[np.ndarray, "rows"] | None,
    learned: Int[np.ndarray, "some"],
) -> Float[np.ndarray, "rows"] | None:
    """The weights of rows that are learned from or calibrate, with those of their classes."""
    if numbers is None:
        return weights
    return with_class_weights(config.training, numbers, learned, weights)


def _target_type(target: Target, stored: str) -> str:
    """The type that a target is read as."""
    if isinstance(target, NumberTarget):
        return "number"
    return "boolean" if stored == "boolean" else "category"


def _rows(
    model: TabularModel,
    columns: Columns,
    index: np.ndarray,
    weights: Float[np.ndarray, "rows"] | None,
) -> Rows:
    """Some encoded rows; `weights` are of all rows."""
    side = _side(columns, index)
    own = None if weights is None else weights[index]
    return _with_targets(model, side, model.encoder.encode(side), own)


def _with_targets(
    model: TabularModel,
    side: Columns,
    inputs: Tensor,
    weights: Float[np.ndarray, "rows"] | None,
) -> Rows:
    own = None if weights is None else torch.from_numpy(weights.astype(np.float32))
    inputs = model.with_groups(inputs, side)
    return Rows(inputs, model.target.encode(side[model.config.target]), own)
