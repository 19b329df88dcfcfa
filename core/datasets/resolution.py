"""Resolves a training on a data set: every default filled in, and notes on what was decided."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from core.calendars import check_holidays
from core.datasets.dataset import Dataset
from core.datasets.datasets import Datasets
from core.datasets.findings.target_checks import check_target
from core.datasets.findings.training_notes import notes_on_columns
from models.config import ModelConfig, ZonedTime
from models.exceptions import InvalidData
from models.features.columns import column_of
from models.tabular.race_recipe import explain_single_fit
from models.training.recipe import resolve
from models.training.task_choice import explain_task


def resolve_targets(
    datasets: Datasets, dataset: Dataset, given: Sequence[ModelConfig]
) -> list[ModelConfig]:
    """The configuration of each target with every default filled in.

    Several targets are numbers, and none of them is a feature of the others.

    Args:
        given: the configuration of each target as the request has it.

    Raises:
        InvalidData: a column or setting cannot work; the error has its JSON pointer.
    """
    if len(given) == 1:
        return [_resolve(datasets, dataset, given[0], ())]
    names = [one.target for one in given]
    _check(given[0], names, dataset)
    found = []
    for place, one in enumerate(given):
        others = [name for name in names if name != one.target]
        try:
            config = _resolve(datasets, dataset, one, others)
        except InvalidData as error:
            path = f"/target/{place}" if error.path == "/target" else error.path
            raise InvalidData(error.message, path) from error
        _check_task(config, place)
        found.append(config)
    return found


def notes_on(
    datasets: Datasets, dataset: Dataset, given: ModelConfig, resolved: ModelConfig
) -> tuple[str, ...]:
    """What is decided about target and features of a training, for its job and version.

    Args:
        given: as the request has it.
        resolved: the same with every default filled in.
    """
    load = partial(datasets.columns, dataset.id)
    profiles = {profile.name: profile for profile in dataset.columns}
    found = check_target(dataset, given.target, load)
    return (
        *explain_task(given, profiles, dataset.rows, load),
        *notes_on_columns(dataset, resolved, found, chosen=given.features is not None),
    )


def notes_on_targets(
    datasets: Datasets,
    dataset: Dataset,
    given: Sequence[ModelConfig],
    resolved: Sequence[ModelConfig],
) -> tuple[str, ...]:
    """`notes_on` each target and why it is fitted once, each note once."""
    profiles, notes = {profile.name: profile for profile in dataset.columns}, list[str]()
    for one, config in zip(given, resolved, strict=True):
        notes += notes_on(datasets, dataset, one, config)
        notes += explain_single_fit(one, config, profiles)
    return tuple(dict.fromkeys(notes))


def _resolve(
    datasets: Datasets, dataset: Dataset, given: ModelConfig, others: Sequence[str]
) -> ModelConfig:
    """The configuration of one target, from the data set without the others."""
    load = partial(datasets.columns, dataset.id)
    columns = [column for column in dataset.columns if column.name not in others]
    check_holidays(given)
    given = with_offsets(given, {one.name for one in dataset.readings if one.offset})
    try:
        return resolve(given, columns, dataset.rows, load)
    except InvalidData as error:
        if not error.rows or dataset.first_line is None:
            raise
        raise error.in_file(dataset.first_line) from error


def with_offsets(given: ModelConfig, names: Collection[str]) -> ModelConfig:
    """The configuration, which knows whether the times of its series are instants.

    Args:
        names: of the columns whose times have an offset from UTC.
    """
    forecast = given.forecast
    if (
        forecast is None
        or not isinstance(forecast.time, ZonedTime)
        or forecast.time.utc is not None
    ):
        return given
    time = replace(forecast.time, utc=forecast.time.column in names)
    return replace(given, forecast=replace(forecast, time=time))


def _check(given: ModelConfig, names: Sequence[str], dataset: Dataset) -> None:
    """Several targets are different columns of numbers, and no features."""
    if given.task not in (None, "regression"):
        message = "several targets are numbers: leave the task out, or train each target alone"
        raise InvalidData(message, "/task")
    columns = {column.name: column for column in dataset.columns}
    for place, name in enumerate(names):
        column_of(columns, name, f"/target/{place}")
        if name in names[:place]:
            raise InvalidData(f"{name!r} is there twice: give each target once", f"/target/{place}")
    for place, feature in enumerate(given.features or ()):
        if feature.name in names:
            message = f"{feature.name!r} is a target: it cannot be a feature, too"
            raise InvalidData(message, f"/features/{place}")


def _check_task(config: ModelConfig, place: int) -> None:
    if config.task != "regression":
        task = str(config.task).replace("_", " ")
        raise InvalidData(
            f"{config.target!r} would be a {task}, and several targets are numbers: train it "
            "alone, or give task 'regression' if all targets are numbers",
            f"/target/{place}",
        )
