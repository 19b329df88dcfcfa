"""Resolves a training of one target or of several: the configuration of each."""

from collections.abc import Sequence
from functools import partial

from app.schemas.training import TrainRequest
from core.calendars import check_holidays
from core.context import Context
from core.datasets.dataset import Dataset
from models.config import ModelConfig
from models.exceptions import InvalidData
from models.features.columns import column_of
from models.training.recipe import resolve

Given = ModelConfig
Resolved = ModelConfig


def resolve_targets(
    context: Context, request: TrainRequest, dataset: Dataset
) -> list[tuple[Given, Resolved]]:
    """The configuration of each target as the request gives it, and with every default filled in.

    Several targets are numbers, and none of them is a feature of the others.

    Raises:
        InvalidData: a column or setting cannot work; the error has its JSON pointer.
    """
    requests = request.each()
    if len(requests) == 1:
        return [_resolve(context, requests[0], dataset, ())]
    names = [one.target_name for one in requests]
    _check(requests, names, dataset)
    found = []
    for place, one in enumerate(requests):
        others = [name for name in names if name != one.target_name]
        try:
            pair = _resolve(context, one, dataset, others)
        except InvalidData as error:
            path = f"/target/{place}" if error.path == "/target" else error.path
            raise InvalidData(error.message, path) from error
        _check_task(pair[1], place)
        found.append(pair)
    return found


def _resolve(
    context: Context, request: TrainRequest, dataset: Dataset, others: Sequence[str]
) -> tuple[Given, Resolved]:
    """The configuration of one target, from the data set without the others."""
    load = partial(context.datasets.columns, dataset.id)
    columns = [column for column in dataset.columns if column.name not in others]
    config = request.config(columns, request.method)
    check_holidays(config)
    return config, resolve(config, columns, dataset.rows, load)


def _check(requests: Sequence[TrainRequest], names: Sequence[str], dataset: Dataset) -> None:
    """Several targets are different columns of numbers, and no features."""
    if requests[0].task not in (None, "regression"):
        message = "several targets are numbers: leave the task out, or train each target alone"
        raise InvalidData(message, "/task")
    columns = {column.name: column for column in dataset.columns}
    for place, name in enumerate(names):
        column_of(columns, name, f"/target/{place}")
        if name in names[:place]:
            raise InvalidData(f"{name!r} is there twice: give each target once", f"/target/{place}")
    for place, feature in enumerate(requests[0].features or ()):
        named = feature if isinstance(feature, str) else feature.name
        if named in names:
            message = f"{named!r} is a target: it cannot be a feature, too"
            raise InvalidData(message, f"/features/{place}")


def _check_task(config: ModelConfig, place: int) -> None:
    if config.task != "regression":
        task = str(config.task).replace("_", " ")
        raise InvalidData(
            f"{config.target!r} would be a {task}, and several targets are numbers: train it "
            "alone, or give task 'regression' if all targets are numbers",
            f"/target/{place}",
        )
