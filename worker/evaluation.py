"""Runs an evaluation job: scores a version on labelled rows."""

from core.context import Context
from core.datasets.inputs import check_inputs, input_types, target_type
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
    profiles = {p.name: p for p in context.datasets.get(spec.dataset).columns}
    target = model.config.target
    stored = list(profiles.values())
    check_inputs(model.inputs, stored)
    if target not in profiles:
        raise InvalidData(f"the data set has no column {target!r}, the target")
    weight = model.config.weight
    if weight in profiles and profiles[weight].type == "number":
        names.append(weight)
    types = input_types(model.inputs, stored)
    types[target] = target_type(profiles[target], model.classes)
    columns = context.datasets.columns(spec.dataset, names, types=types)
    return model.evaluate(columns, prune=spec.prune)
