"""The rows of a file for pictures: the service reads them, as it read the training data."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from credence.client.arrow import Column
from credence.client.calls import Calls
from credence.client.dataset_calls import DatasetCalls
from credence.client.files.predictions import READING
from credence.client.frames import Frame, read_frame
from credence.client.operations import Operation
from credence.types import Dataset, Json, PredictSettings, Version

MAX_ROWS = 1000  # that the service gives of a data set

ReadFile = tuple[Dataset, Frame, PredictSettings]


def read_file(
    calls: Calls, version: Version, file: str | Path, settings: PredictSettings
) -> Operation[ReadFile]:
    """The file as a data set, its first rows, and the settings without those of reading.

    Times are datetimes, as in a frame.
    """
    options: Json = dict(settings)
    reading: Any = {name: options.pop(name) for name in READING if name in options}
    dataset = yield from DatasetCalls.upload(calls, Path(file), like=version["model"], **reading)
    records = yield from DatasetCalls.dataset_rows(calls, dataset["id"], MAX_ROWS)
    times = [one["name"] for one in dataset["columns"] if one["type"] == "datetime"]
    frame = read_frame([_with_times(record, times) for record in records])
    return dataset, frame, cast(PredictSettings, options)


def whole_history(file: str | Path, dataset: Dataset, frame: Frame) -> Frame:
    """The rows, which are all of the file.

    Raises:
        ValueError: the file has more rows than the service gives at once.
    """
    if dataset["rows"] > frame.num_rows:
        message = f"{file} has {dataset['rows']:,} rows: of a history of more than {MAX_ROWS:,}"
        raise ValueError(f"{message} give a frame, such as pandas.read_csv reads")
    return frame


def with_ends(columns: Mapping[str, Column], dataset: Dataset, name: str) -> dict[str, Column]:
    """The columns, of which one of numbers has but its smallest and largest value in the file."""
    profile = next((one for one in dataset["columns"] if one["name"] == name), None)
    if profile is None or profile["type"] != "number" or "min" not in profile:
        return dict(columns)
    return {**columns, name: Column("number", [profile["min"], profile["max"]])}


def _with_times(record: Json, names: list[str]) -> Json:
    times = {name: record[name] for name in names if record.get(name) is not None}
    return record | {name: datetime.fromisoformat(text) for name, text in times.items()}
