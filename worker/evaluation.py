"""Runs an evaluation job: scores a version on labelled rows."""

from core.context import Context
from core.datasets.inputs import check_inputs
from core.datasets.labelled import labelled_columns
from core.jobs.jobs import EvaluateSpec
from models.artifact.files import read_model
from models.config import Json
from models.exceptions import InvalidData

BLOCK_ROWS = 2**16


def run_evaluation(context: Context, spec: EvaluateSpec) -> Json:
    """The metrics of a version on the rows of a data set, weighted as in training if they can be.

    Raises:
        InvalidData: the data set does not have the target.
    """
    version = context.registry.get(spec.model, spec.version)
    model = read_model(context.registry.path(version))
    profiles = {p.name: p for p in context.datasets.get(spec.dataset).columns}
    weight = model.config.weight
    check_inputs(model.inputs, list(profiles.values()))
    if missing := [target for target in model.targets if target not in profiles]:
        raise InvalidData(f"the data set has no column {missing[0]!r}, the target")
    also = [weight] if weight in profiles and profiles[weight].type == "number" else []
    rows = context.datasets.get(spec.dataset).rows
    blocks = (
        labelled_columns(
            context.datasets, spec.dataset, model, slice(start, start + BLOCK_ROWS), also
        )
        for start in range(0, rows, BLOCK_ROWS)
    )
    return model.evaluate_blocks(blocks, prune=spec.prune)
