"""The recommended recipe: fills in what a configuration leaves open, from the data profile."""

from collections.abc import Mapping, Sequence

import numpy as np

from models.config import ModelConfig, Task
from models.features.columns import ColumnProfile, column_of
from models.features.usable import without_weight_0
from models.forecasting.recipe import Load
from models.language.recipe import resolve_language
from models.tabular.recipe import resolve_rows


def resolve(
    config: ModelConfig,
    profiles: Sequence[ColumnProfile],
    num_rows: int,
    load: Load | None = None,
    *,
    once: bool = False,
) -> ModelConfig:
    """The configuration with every None replaced by what the recipe recommends.

    Rows of weight 0 count as absent.

    Args:
        load: reads columns by name: those of a series, and a target whose values say its task.
        once: a table is fitted once also where its recipe could be chosen by a race, so that
            methods are compared on one network.

    Raises:
        InvalidData: naming the column or setting that cannot work, with a JSON pointer.
    """
    columns: Mapping[str, ColumnProfile] = {profile.name: profile for profile in profiles}
    columns, num_rows = without_weight_0(columns, num_rows, config.weight, load)
    target = column_of(columns, config.target, "/target")
    task = config.task or _default_task(config, target, load)
    if task == "language_model":
        return resolve_language(config, target, num_rows)
    return resolve_rows(config, columns, task, num_rows, load, once=once)


def _default_task(config: ModelConfig, target: ColumnProfile, load: Load | None) -> Task:
    if config.forecast is not None:
        return "forecasting"
    match target.type:
        case "number":
            return "classification" if _is_binary(target, load) else "regression"
        case "text":
            return "language_model"
    return "classification"


def _is_binary(target: ColumnProfile, load: Load | None) -> bool:
    """Whether a number target has no other values than 0 and 1, which are then two classes."""
    if load is None or (target.min, target.max) != (0.0, 1.0):
        return False
    values = load([target.name])[target.name]
    return bool(np.isin(values[~np.isnan(values)], (0.0, 1.0)).all())
