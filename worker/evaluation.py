"""An evaluation job: a stored version scored on labelled rows."""

import numpy as np

from core.context import Context
from core.datasets.inputs import check_inputs
from core.jobs.jobs import EvaluateSpec
from models.artifact.files import read_model
from models.config import Json
from models.exceptions import InvalidData
from models.features.columns import Columns
from models.features.targets import present
from models.forecasting.model import Forecaster


def run_evaluation(context: Context, spec: EvaluateSpec) -> Json:
    """The version's metrics on the data set's labelled rows."""
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version))
    names = [feature.name for feature in model.features] + [model.config.target]
    profiles = context.datasets.get(spec.dataset).columns
    check_inputs(model.inputs, profiles)
    if model.config.target not in {profile.name for profile in profiles}:
        raise InvalidData(f"the data set has no column {model.config.target!r} to compare with")
    columns = context.datasets.columns(spec.dataset, names)
    if isinstance(model, Forecaster):  # steps without a target are still steps
        return model.evaluate(columns, prune=spec.prune)
    return model.evaluate(_labelled(columns, model.config.target), prune=spec.prune)


def _labelled(columns: Columns, target: str) -> Columns:
    rows = np.flatnonzero(present(columns[target]))
    if rows.size == 0:
        raise InvalidData(f"no row of the data set has a {target!r} to compare with")
    return {name: values[rows] for name, values in columns.items()}
