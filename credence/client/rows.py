"""Rows in any form → requests to `/predict` and `/feedback` → one result."""

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import httpx

from credence.client.arrow import MEDIA_TYPE, Column, Table, concatenate, from_stream, to_stream
from credence.client.calls import Calls
from credence.client.files.feedback import label_file
from credence.client.files.predictions import predict_file, to_parameter
from credence.client.frames import Frame, read_frame, select
from credence.client.operations import Operation
from credence.client.prediction import Prediction
from credence.client.requests import Request, creation, request
from credence.exceptions import CredenceAPIError
from credence.progress import rows_bar
from credence.types import Feature, Feedback, Json, PredictSettings, Version

WORK_PER_REQUEST = 1_000_000  # rows × samples: a tenth of the default MAX_WORK, for a progress bar
BYTES_PER_REQUEST = 2**24  # a quarter of the largest body
LABELS_PER_REQUEST = 1_000  # each is scored with 100 samples: a hundredth of the default MAX_WORK
TOO_LARGE = 413
UNSPLIT = ("store", "target_mc_error", "deadline_ms", "horizon")  # options of one whole request


def inputs_of(version: Version) -> list[Feature]:
    """The columns to predict from: the features; for a forecast also the target and the key."""
    if version["task"] == "language_model":
        return [{"name": "text", "type": "text"}]
    if version["task"] != "forecasting":
        return version["features"]
    forecast = version["forecast"]
    target: Feature = {"name": version["target"], "type": "number"}
    key: list[Feature] = [{"name": forecast["key"], "type": "category"}] if forecast["key"] else []
    known = [f for f in version["features"] if f["name"] != forecast["key"]]
    return [*known, target, *key]


def future_of(version: Version) -> list[Feature]:
    """The columns that a forecast needs for the steps ahead: the covariates known ahead."""
    forecast = version["forecast"]
    given = {forecast["time"], forecast["key"]}
    given |= {*(forecast.get("static") or ()), *forecast.get("past", ())}
    return [feature for feature in version["features"] if feature["name"] not in given]


def predict_rows(
    calls: Calls, version: Version, rows: Any, settings: PredictSettings, future: Any = None
) -> Operation[Prediction]:
    """Predict rows, or the steps after them; many rows in several requests.

    Raises:
        TypeError, ValueError: the rows have no columns, or a feature has none.
    """
    classes = version.get("classes")
    names = None if classes is None else tuple(classes)
    if isinstance(rows, str | Path):
        if future is not None:
            raise TypeError("with `future`, give the history as a frame or as columns, not a file")
        tables: list[Table] = []
        yield from predict_file(calls, version, Path(rows), {**settings}, tables.append)
        return Prediction.of(concatenate(tables), names, Frame({}).restore)
    if "keep" in settings:
        raise TypeError("`keep` is for a file: to_frame() keeps the index of a frame")
    features = inputs_of(version)
    frame = read_frame(rows, [feature["name"] for feature in features])
    frame = Frame(select(frame.columns, features), frame.restore)
    options: dict[str, Any] = {"model": version["model"], "version": version["version"], **settings}
    if future is not None:
        table = yield from _forecast(calls, frame, read_frame(future), options)
    elif version["task"] == "forecasting" or any(name in settings for name in UNSPLIT):
        table = yield from _predict(calls, frame.columns, slice(None), options)
    else:
        table = yield from _predict_in_parts(calls, frame, options)
    return Prediction.of(table, names, frame.restore)


def submit_feedback(
    calls: Calls,
    version: Version,
    rows: Any,
    truth: Any,
    prune: float | None = None,
    **reading: Any,
) -> Operation[Feedback]:
    """Send true values in several requests; the last response, whose window has all, is returned.

    Args:
        rows: also the path of a file, which the service reads as it read the training data.
        truth: a value per row, None or NaN if unknown; or the name of their column in `rows`.
        reading: options of reading a file.

    Raises:
        ValueError: values and rows differ in number, a column is missing, or no value is known.
        TypeError: values for the rows of a file, or options of reading for other rows.
    """
    if isinstance(rows, str | Path):
        if not isinstance(truth, str):
            raise TypeError("the true values of a file are in it: give the name of their column")
        options: Json = {"truth": truth, **reading} | ({} if prune is None else {"prune": prune})
        return (yield from label_file(calls, version, Path(rows), options))
    if reading:
        raise TypeError(f"{', '.join(reading)}: only for a file")
    columns = read_frame(rows, [feature["name"] for feature in version["features"]]).columns
    labels = _labels(columns, truth)
    inputs = select(columns, inputs_of(version))
    length = Frame(inputs).num_rows
    if len(labels) != length or not labels:
        raise ValueError(f"{len(labels)} values for {length} rows: give one for each row")
    body: Json = {"model": version["model"], "version": version["version"]}
    body |= {} if prune is None else {"prune": prune}
    feedback: Feedback | None = None
    for start in range(0, length, LABELS_PER_REQUEST):
        part = slice(start, start + LABELS_PER_REQUEST)
        if any(label is not None for label in labels[part]):
            document = body | {"inputs": to_json(inputs, part), "truth": labels[part]}
            feedback = yield from calls.send(creation("/feedback", json=document))
    if feedback is None:
        raise ValueError("no value is known: give at least one")
    return feedback


def to_json(columns: Mapping[str, Column], rows: slice = slice(None)) -> dict[str, list[Any]]:
    """Columns as lists for JSON, times as RFC 3339."""
    return {
        name: [v.isoformat() if isinstance(v, date) else v for v in _list(column.values[rows])]
        for name, column in columns.items()
    }


def _list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else values.tolist()


def _labels(columns: Mapping[str, Column], truth: Any) -> list[Any]:
    if not isinstance(truth, str):
        return _list(read_frame({"truth": truth}).columns["truth"].values)
    if truth not in columns:
        raise ValueError(f"no column {truth!r}: there are {', '.join(columns)}")
    return _list(columns[truth].values)


def _predict_in_parts(calls: Calls, frame: Frame, options: dict[str, Any]) -> Operation[Table]:
    """Predict in several requests; a part that the service refuses as too large is halved."""
    tables: list[Table] = []
    done, size = 0, _rows_per_request(frame, int(options.get("samples", 100)))
    with rows_bar(frame.num_rows, visible=calls.progress and frame.num_rows > size) as show:
        while done < frame.num_rows or not tables:
            part = slice(done, min(done + size, frame.num_rows))
            try:
                tables.append((yield from _predict(calls, frame.columns, part, options)))
            except CredenceAPIError as error:
                rows = part.stop - part.start
                if error.status != TOO_LARGE or rows <= 1:
                    raise
                size = rows // 2
                continue
            done = part.stop
            show(part.stop - part.start)
    return concatenate(tables)


def _rows_per_request(frame: Frame, samples: int) -> int:
    """As many as the limits of work and bytes allow; the first rows give the bytes per row."""
    sample = to_stream(frame.columns, slice(0, 100))
    bytes_per_row = len(sample) / max(1, min(100, frame.num_rows))
    by_work = WORK_PER_REQUEST // max(1, samples)
    return max(1, min(by_work, int(BYTES_PER_REQUEST / bytes_per_row)))


def _predict(
    calls: Calls, columns: Mapping[str, Column], rows: slice, options: dict[str, Any]
) -> Operation[Table]:
    params = {name: to_parameter(value) for name, value in options.items()}
    headers = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE}
    body = to_stream(columns, rows)
    return calls.send(_request(options, params=params, headers=headers, body=body))


def _forecast(
    calls: Calls, history: Frame, future: Frame, options: dict[str, Any]
) -> Operation[Table]:
    """Send JSON: an Arrow body has no place for the covariates of the steps ahead."""
    document = options | {"inputs": to_json(history.columns), "future": to_json(future.columns)}
    return calls.send(_request(options, json=document, headers={"Accept": MEDIA_TYPE}))


def _request(options: Mapping[str, Any], **parts: Any) -> Request[Any]:
    """A prediction may be repeated; one that is stored needs an idempotency key for that."""
    if options.get("store"):
        return creation("/predict", read=_table, **parts)
    return request("POST", "/predict", read=_table, repeatable=True, **parts)


def _table(response: httpx.Response) -> Table:
    return from_stream(response.content)
