"""From stored columns to rows a method can fit: convert, drop, split, encode."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from models.config import BBBConfig, MethodConfig, ModelConfig, SplitBy, SplitTime
from models.data import Rows, split_rows
from models.exceptions import InvalidData
from models.features import Columns, FeatureEncoder
from models.forecasting.preparation import prepare_series, profile_series
from models.model import BayesianModel
from models.randomness import derive_seed
from models.recipe import MIN_ROWS
from models.row_profile import RowProfile, summarise_columns
from models.targets import ClassTarget, NumberTarget, Target, present


@dataclass(frozen=True)
class Prepared:
    """A model without posteriors yet, its training rows and those held out."""

    model: BayesianModel
    rows: Rows
    held_out: Rows
    profile: RowProfile


def prepare(columns: Columns, types: Mapping[str, str], config: ModelConfig) -> Prepared:
    """Encoders and target scale are fitted to the training side of the split alone.

    Raises:
        InvalidData: if too few rows have a target, or nothing varies.
    """
    match config.task:
        case "forecasting":
            forecaster, windows, last = prepare_series(columns, types, config)
            profile = profile_series(columns, forecaster, len(windows), len(last))
            return Prepared(forecaster, windows, last, profile)
    labelled = np.flatnonzero(present(columns[config.target]))
    if len(labelled) < MIN_ROWS:
        raise InvalidData(
            f"{len(labelled)} rows have a target; at least {MIN_ROWS} are needed",
            "/dataset",
        )
    dropped = len(columns[config.target]) - len(labelled)
    key = _split_key(columns, config)
    columns = _side(columns, labelled)
    training = config.training
    train, held_out = split_rows(
        training.split,
        training.validation_fraction,
        training.seed,
        len(labelled),
        None if key is None else key[labelled],
    )
    model = _skeleton(_side(columns, train), types, config, dropped)
    fitted = np.arange(len(labelled)) if training.refit else train
    profile = RowProfile(
        learned=len(fitted),
        held_out=len(held_out),
        columns=summarise_columns(
            _side(columns, fitted),
            model.encoder,
            config.target,
            _target_type(model.target, types[config.target]),
        ),
    )
    rows, scored = (_rows(model, columns, index) for index in (train, held_out))
    return Prepared(model, rows, scored, profile)


def _split_key(columns: Columns, config: ModelConfig) -> np.ndarray | None:
    """The column that a split by group or time looks at."""
    match config.training.split:
        case SplitBy(by=name) | SplitTime(time=name):
            return columns[name]
    return None


def _side(columns: Columns, index: np.ndarray) -> Columns:
    return {name: values[index] for name, values in columns.items()}


def _skeleton(
    columns: Columns, types: Mapping[str, str], config: ModelConfig, dropped: int
) -> BayesianModel:
    encoder = FeatureEncoder.fit(config.features or (), types, columns)
    notes = []
    if dropped:
        notes.append(f"{dropped} rows without a target were left out")
    notes.extend(notes_on_objective(config.method))
    if constant := encoder.constant_columns():
        notes.append(f"constant columns were left out: {', '.join(constant)}")
    target = _fit_target(columns[config.target], types[config.target], config)
    seed = derive_seed(config.training.seed, "prediction") % 2**31
    return BayesianModel(config, encoder, target, {}, seed, math.inf, notes=tuple(notes))


def notes_on_objective(method: MethodConfig) -> tuple[str, ...]:
    """What a model's card says where the KL is tempered."""
    if not isinstance(method, BBBConfig) or method.kl.weight in ("uniform", "blundell", 1.0):
        return ()
    return (f"the KL has weight {method.kl.weight}: the objective is no ELBO",)


def _fit_target(values: np.ndarray, target_type: str, config: ModelConfig) -> Target:
    if config.task == "regression":
        return NumberTarget.fit(values)
    return ClassTarget.fit(values, boolean=target_type == "boolean")


def _target_type(target: Target, stored: str) -> str:
    """What a target is read as: classes, if not numbers."""
    if isinstance(target, NumberTarget):
        return "number"
    return "boolean" if stored == "boolean" else "category"


def _rows(model: BayesianModel, columns: Columns, index: np.ndarray) -> Rows:
    side = _side(columns, index)
    weights = None
    if model.config.weight is not None:
        weights = torch.from_numpy(side[model.config.weight].astype(np.float32))
    targets = model.target.encode(side[model.config.target])
    return Rows(model.encoder.encode(side), targets, weights)
