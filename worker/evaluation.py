"""Runs an evaluation job: scores a version on labelled rows."""

from core.context import Context
from core.datasets.inputs import check_inputs
from core.jobs.jobs import EvaluateSpec
from models.artifact.files import read_model
from models.config import Json
from models.exceptions import InvalidData


def run_evaluation(context: Context, spec: EvaluateSpec) -> Json:
    """The metrics of a version on the rows of a data set, weighted as in training if they can be.

    Raises:
        InvalidData: the data set does not have the target.
    """
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version))
    names = [feature.name for feature in model.features] + [model.config.target]
    profiles = context.datasets.get(spec.dataset).columns
    check_inputs(model.inputs, profiles)
    if model.config.target not in {profile.name for profile in profiles}:
        raise InvalidData(f"the data set has no column {model.config.target!r}, the target")
    if model.config.weight in {profile.name for profile in profiles if profile.type == "number"}:
        names.append(model.config.weight)
    columns = context.datasets.columns(spec.dataset, names)
    return model.evaluate(columns, prune=spec.prune)
