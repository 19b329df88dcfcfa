"""Makes the training problem of a table: drops, splits and encodes its rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.card import RowProfile, summarise_columns
from models.config import LikelihoodConfig, MLPConfig, ModelConfig
from models.features.categories import target_scores
from models.features.columns import Columns, select_rows
from models.features.feature_encoder import FeatureEncoder
from models.features.row_groups import Groups
from models.features.row_weights import (
    BALANCED_NOTE,
    UsableRows,
    check_enough,
    notes_on_left_out,
    notes_on_weights,
    row_weights,
    with_class_weights,
)
from models.features.rows import Rows, evenly_spread
from models.features.splits import (
    Division,
    Folds,
    assign_folds,
    divide_rows,
    notes_on_classes,
    split_key,
)
from models.features.target_shapes import check_support, describe_shape, describe_target
from models.features.targets import ClassTarget, NumberTarget, Target, target_type
from models.features.weighted import Weights, part
from models.fitting.distributed import ALONE, Ranks
from models.inference.method_recipe import notes_on_objective
from models.out_of_distribution.surprise import Surprise
from models.randomness import derive_seed
from models.tabular.fold_problem import FoldProblem
from models.tabular.model import TabularModel
from models.tabular.row_problem import RowProblem
from models.tabular.shape_choice import MAX_ROWS, rank


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
    check_enough(len(usable.index), config.weight)
    columns = select_rows(columns, usable.index)
    key = split_key(config.training, columns)
    whole, classes, class_target = columns[config.target], None, None
    if config.task == "classification":
        class_target = ClassTarget.fit(whole, boolean=types[config.target] == "boolean")
        classes = class_target.encode(whole).numpy()
    split = (
        divide_rows(config.training, len(usable.index), key, classes)
        if assigned is None
        else assigned.division
    )
    notes = [*notes_on_left_out(usable.without_target, usable.of_weight_0)]
    notes += _notes_on(split, config)
    if class_target is not None and classes is not None:
        notes += notes_on_classes(class_target.classes, classes, split)
    weights = row_weights(config, columns)
    if weights is not None:
        notes += notes_on_weights(weights, weights[split.calibration])
    places = np.union1d(split.training, split.stopping)
    learned = select_rows(columns, places)
    fit_weights = with_class_weights(config.training, classes, places, weights)
    learned_weights = part(fit_weights, places)
    learned_classes = None if classes is None else classes[places]
    of_row = (
        assign_folds(config.training, len(places), part(key, places), learned_classes)
        if assigned is None
        else torch.from_numpy(assigned.folds[places])
    )
    encoder, inputs = _encode(config, types, learned, learned_classes, of_row, learned_weights)
    target = class_target or _fit_number(config, types, learned, columns)
    model = _skeleton(encoder, config, target, notes)
    scores = Surprise.begin(encoder, types, learned, config.false_alarm_rate, learned_weights)
    name = config.training.groups
    groups = None if name is None else Groups.fit(name, types[name], columns[name])
    model = replace(model, surprise=scores, groups=groups)
    rows = _with_targets(model, learned, inputs, learned_weights)
    training, stopping = (
        rows[torch.from_numpy(np.searchsorted(places, part))]
        for part in (split.training, split.stopping)
    )
    calibration = _rows(model, columns, split.calibration, fit_weights)
    refit = config.training.refit
    fitted = places if refit else split.training
    profile = RowProfile(
        learned=len(fitted),
        stopping=0 if refit else len(split.stopping),
        calibration=len(split.calibration),
        held_out=len(split.scores),
        columns=summarise_columns(
            select_rows(columns, fitted),
            model.encoder,
            config.target,
            target_type(config.task, types[config.target]),
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


def _notes_on(split: Division, config: ModelConfig) -> Iterator[str]:
    """Notes on configured sets of rows that are empty."""
    rows = sum(map(len, (split.training, split.stopping, split.calibration, split.scores)))
    if config.training.calibration_fraction and not len(split.calibration):
        yield f"not calibrated: {rows} rows, or their groups, leave too few for it"
    if config.training.stopping_fraction and not len(split.stopping):
        yield f"no early stopping: {rows} rows, or their groups, leave none for it"


def _skeleton(
    encoder: FeatureEncoder, config: ModelConfig, target: Target, notes: Sequence[str]
) -> TabularModel:
    notes = [*notes, *notes_on_objective(config.method)]
    if config.training.class_weight == "balanced":
        notes.append(BALANCED_NOTE)
    if isinstance(target, NumberTarget) and target.is_shaped and not config.has_open_shape:
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
    weights: Weights | None,
) -> tuple[FeatureEncoder, Float[Tensor, "rows compact"]]:
    """The encoder of the learning rows, and these rows encoded.

    It has pieces where parts of a network may read them. Inputs that are made of targets are those
    of rows in other folds.
    """
    features, network = config.features or (), config.network
    rate = config.false_alarm_rate
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
    by_fold = encoder.by_fold(learned, scores, folds.numpy(), weights)
    return encoder, encoder.encode_folds(by_fold, learned, folds.numpy())


def _fit_number(
    config: ModelConfig, types: Mapping[str, str], learned: Columns, whole: Columns
) -> NumberTarget:
    """The target's scale and support, of several scales the one that suits a linear model."""
    name, weights, likelihood = config.target, row_weights(config, learned), config.first_likelihood
    if not isinstance(likelihood, LikelihoodConfig):
        return NumberTarget.fit(learned[name], weights)
    if config.support is not None:
        check_support(whole[name], config.support)
    candidates = describe_target(learned[name], config.support, likelihood, weights)
    if config.has_open_shape:  # the race chooses the scale
        return candidates[0]
    rows = evenly_spread(len(learned[name]), MAX_ROWS)
    sampled = select_rows(learned, rows.numpy())
    # Without pieces, which a line does not need, and effects, which are made of these targets.
    some_weights = row_weights(config, sampled)
    encoder = FeatureEncoder.fit(config.features or (), types, sampled, weights=some_weights)
    inputs, seed = encoder.encode(sampled), config.training.seed
    return rank(candidates, inputs, sampled[name], seed, some_weights)[0][0]


def _rows(
    model: TabularModel, columns: Columns, index: np.ndarray, weights: Weights | None
) -> Rows:
    """Some encoded rows; `weights` are of all rows."""
    some = select_rows(columns, index)
    return _with_targets(model, some, model.encoder.encode(some), part(weights, index))


def _with_targets(
    model: TabularModel, columns: Columns, inputs: Tensor, weights: Weights | None
) -> Rows:
    each = None if weights is None else torch.from_numpy(weights.astype(np.float32))
    inputs = model.with_groups(inputs, columns)
    return Rows(inputs, model.target.encode(columns[model.config.target]), each)
