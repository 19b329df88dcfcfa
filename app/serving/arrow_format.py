"""Reads requests and writes responses of `POST /predict` in Arrow's stream format.

A request has a column per feature, in any order. Null is a missing value. Numbers are not copied
until they are standardised.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from starlette.datastructures import QueryParams

from app.http.bodies import MAX_BYTES
from app.http.validation import pointer
from app.serving.inputs import check_names, refuse_texts
from app.serving.query import read_options
from app.serving.request import PredictionRequest, PredictionResponse
from app.serving.values import FLOAT32_MAX, read_values
from core.datasets import columns as core
from core.datasets.columns import numbers, strings, tensors, times
from core.datasets.columns.conversion import to_numpy
from core.datasets.columns.place import Column, Place
from core.datasets.formats.arrow import read_stream
from core.exceptions import Invalid, TooLarge
from core.predictions.prediction_table import to_table, with_metadata
from models.features.columns import Columns, InputColumn
from models.features.readings import without_sentinels

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
MAX_TABLE_BYTES = 4 * MAX_BYTES  # limits how far dictionaries and compression expand
ROWS = "/inputs"
WANTED = {
    "number": "integers, floats or decimals",
    "boolean": "booleans",
    "category": "strings, dictionary-encoded or not",
    "datetime": "timestamps, dates or RFC 3339 strings",
    "text": "strings",
    "tensor": "a fixed-shape tensor or a fixed-size list of numbers",
}


def read_request(query: QueryParams, body: bytes) -> PredictionRequest:
    """The request: its rows are in the body, its options in the query.

    Raises:
        NotParseable: the body is not an Arrow stream, or damaged.
        TooLarge: the decoded body takes more than `MAX_TABLE_BYTES`.
        Invalid: a parameter or column is wrong; the error names it.
    """
    parameters = read_options(query)
    table = _read_table(body)
    if not table.num_rows:
        raise Invalid([(ROWS, "there are no rows: give at least one")])
    decode = partial(to_columns, table)
    return PredictionRequest.of(parameters, table.num_rows, len(body), decode)


def to_columns(
    table: pa.Table, features: Sequence[InputColumn], unread: Collection[str] = ()
) -> Columns:
    """Arrays by feature, in the convention of `models.features.columns`.

    Args:
        unread: names of columns that are no features, and may be there all the same.

    Raises:
        Invalid: a feature is missing, a column is not a feature, or a type or value is wrong. The
            error names the column and, for a value, the row.
    """
    refuse_texts(features)
    check_names(table.column_names, features, ("inputs",), unread=unread)
    return {f.name: _read(f, table.column(f.name), Place(f.name, ROWS)) for f in features}


def write_response(response: PredictionResponse) -> bytes:
    """One record batch with a row per predicted row. The schema's metadata name the version."""
    version, prediction = response.version, response.prediction
    table = with_metadata(to_table(prediction), version.model, version.version, prediction)
    more = {"timings_ms": orjson.dumps(response.timings.milliseconds())}
    if response.id is not None:
        more["id"] = response.id.encode()
    if response.file is not None:
        more |= {name: orjson.dumps(value) for name, value in asdict(response.file).items()}
    schema = table.schema.with_metadata({**(table.schema.metadata or {}), **more})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _read_table(body: bytes) -> pa.Table:
    try:
        table = read_stream(pa.BufferReader(body), MAX_TABLE_BYTES, ROWS)
    except TooLarge as error:
        message = f"the Arrow stream takes more than {MAX_TABLE_BYTES} bytes once decoded"
        raise TooLarge(f"{message}: send fewer rows at a time") from error
    core.check_names(table.column_names, ROWS)
    return table


def _read(feature: InputColumn, column: Column, place: Place) -> np.ndarray:
    type_ = column.type
    match feature.type:
        case "tensor" if tensors.is_tensor(type_):
            return _tensors(column, feature.shape, place)
        case "number" if numbers.is_number(type_):
            return without_sentinels(_numbers(column, place), feature.reading)
        case "boolean" if pa.types.is_boolean(type_):
            return to_numpy(column, "boolean")
        case "datetime" if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
            return to_numpy(times.to_utc(column, place), "datetime")
        case _ if strings.is_string(type_) and _takes_texts(feature):
            return _values(feature, column.to_pylist())
        case "number" | "boolean" | "category" | "datetime" | "text" if pa.types.is_null(type_):
            return _values(feature, [None] * len(column))
    raise place.invalid(f"has the type {type_}: give {WANTED[feature.type]}")


def _takes_texts(feature: InputColumn) -> bool:
    return feature.reading is not None or feature.type in ("category", "datetime", "text")


def _values(feature: InputColumn, values: list[Any]) -> np.ndarray:
    """The array of a column, read as a column in JSON."""
    return read_values(feature, values, lambda i: pointer(("inputs", feature.name, i)))


def _numbers(column: Column, place: Place) -> np.ndarray:
    """float64 with NaN for null. A NaN in the request is refused, as in JSON."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values = column.to_numpy().astype(np.float64, copy=False)
    wrong = ~(np.abs(values) <= FLOAT32_MAX)
    if column.null_count:
        wrong &= np.asarray(column.is_valid())
    if wrong.any():
        message = "is NaN, infinite or outside float32: give a finite number, or null if missing"
        raise place.invalid(message, int(wrong.argmax()))
    return values


def _tensors(column: Column, shape: tuple[int, ...] | None, place: Place) -> np.ndarray:
    """float32 [rows, …], without missing values."""
    column = tensors.checked(column, place)
    given = tuple(column.type.shape)
    if shape is not None and given != shape:
        raise place.invalid(f"has rows of shape {list(given)}: the model takes {list(shape)}")
    return tensors.to_numpy(column).astype(np.float32, copy=False)
