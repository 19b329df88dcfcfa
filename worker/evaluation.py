"""Runs an evaluation job: scores a version on labelled rows."""

from core.context import Context
from core.datasets.inputs import check_inputs, input_types, target_type, to_inputs
from core.jobs.jobs import EvaluateSpec
from models.artifact.files import read_model
from models.config import Json
from models.exceptions import InvalidData
from models.features.columns import InputColumn
from models.model import TrainedModel


def run_evaluation(context: Context, spec: EvaluateSpec) -> Json:
    """The metrics of a version on the rows of a data set, weighted as in training if they can be.

    Raises:
        InvalidData: the data set does not have the target.
    """
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version))
    targets = model.targets
    names = list(dict.fromkeys([*(c.name for c in model.inputs), *targets]))
    profiles = {p.name: p for p in context.datasets.get(spec.dataset).columns}
    stored = list(profiles.values())
    check_inputs(model.inputs, stored)
    for target in targets:
        if target not in profiles:
            raise InvalidData(f"the data set has no column {target!r}, the target")
    weight = model.config.weight
    if weight in profiles and profiles[weight].type == "number":
        names.append(weight)
    types = input_types(model.inputs, stored)
    types |= {target: target_type(profiles[target], model.classes) for target in targets}
    columns = context.datasets.columns(spec.dataset, names, types=types)
    needed = {column.name: column for column in (*_labels(model), *model.inputs)}
    return model.evaluate(to_inputs(columns, types, list(needed.values())), prune=spec.prune)


def _labels(model: TrainedModel) -> tuple[InputColumn, ...]:
    """The target, if it is a number or has words as classes: others are read as they are stored."""
    words = all(isinstance(name, str) for name in model.classes or ())
    return model.labels if words else ()
