"""An evaluation job: a stored version scored on labelled rows."""

from collections.abc import Mapping

import numpy as np

from core.context import Context
from core.jobs import EvaluateSpec
from models import checkpoint
from models.config import Json
from models.exceptions import InvalidData
from models.features import Columns
from models.model import BayesianModel
from models.targets import present


def run_evaluation(context: Context, spec: EvaluateSpec) -> Json:
    """The version's metrics on the data set's labelled rows."""
    version = context.registry.get(spec.model, spec.version)
    model = checkpoint.read(context.registry.path(version))
    names = [feature.name for feature in model.features] + [model.config.target]
    dataset = context.datasets.get(spec.dataset)
    types = {profile.name: profile.type for profile in dataset.columns}
    _check_columns(model, types)
    columns = context.datasets.columns(spec.dataset, names)
    return model.evaluate(_labelled(columns, model.config.target), prune=spec.prune)


def _check_columns(model: BayesianModel, types: Mapping[str, str]) -> None:
    """Every column that the model needs, of the type that it was trained on."""
    needed = {column.name: column.type for column in model.inputs}
    for name in [*needed, model.config.target]:
        if name not in types:
            raise InvalidData(f"the data set has no column {name!r}, which the model needs")
        if types[name] != needed.get(name, types[name]):
            raise InvalidData(
                f"column {name!r} is of type {types[name]}; the model needs {needed[name]}"
            )


def _labelled(columns: Columns, target: str) -> Columns:
    rows = np.flatnonzero(present(columns[target]))
    if rows.size == 0:
        raise InvalidData(f"no row of the data set has a {target!r} to compare with")
    return {name: values[rows] for name, values in columns.items()}
