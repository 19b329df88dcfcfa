"""What a model reads of a data set: its inputs, and the labels where there are any."""

from collections.abc import Collection, Mapping, Sequence

from core.datasets.datasets import ALL_ROWS, Datasets, RowSelection
from core.datasets.inputs import (
    check_inputs,
    input_types,
    row_counted_from_0,
    target_type,
    to_inputs,
)
from models.features.columns import Columns, InputColumn
from models.model import TrainedModel


def labelled_columns(
    datasets: Datasets,
    dataset_id: str,
    model: TrainedModel,
    rows: RowSelection = ALL_ROWS,
    also: Sequence[str] = (),
) -> Columns:
    """The model's inputs and, if the data set has them, its targets, read as in training.

    Args:
        also: more columns, as they are stored.

    Raises:
        Invalid: a column is missing, or a value cannot be read as the model needs it.
    """
    dataset = datasets.get(dataset_id)
    profiles = {profile.name: profile for profile in dataset.columns}
    stored = list(profiles.values())
    check_inputs(model.inputs, stored)
    types, needed = input_types(model.inputs, stored), list(model.inputs)
    names = [*dict.fromkeys([*(column.name for column in needed), *also])]
    targets = [target for target in model.targets if target in profiles]
    names = [*dict.fromkeys([*names, *targets])]
    types |= {target: target_type(profiles[target], model.classes) for target in targets}
    needed = [*(one for one in _labels(model) if one.name in targets), *needed]
    columns = datasets.columns(dataset_id, names, rows, types)
    first = (rows.start or 0) if isinstance(rows, slice) else 0
    wanted = list({column.name: column for column in needed}.values())
    return to_inputs(
        columns,
        types,
        wanted,
        place=lambda row: row_counted_from_0(first + row),
        readings=dataset.readings,
    )


def levels_known(model: TrainedModel) -> Mapping[str, Collection[str]]:
    """The levels of each category of a model, its classes among them."""
    return {column.name: column.levels for column in (*model.labels, *model.inputs)}


def _labels(model: TrainedModel) -> tuple[InputColumn, ...]:
    """The targets that are numbers or have words as classes: others are read as they are stored."""
    words = all(isinstance(name, str) for name in model.classes or ())
    return model.labels if words else ()
