"""Reads requests and writes responses of `POST /predict` in Arrow's stream format.

A request has a column per feature, in any order. Null is a missing value. Numbers are not copied
until they are standardised.
"""

from dataclasses import asdict
from functools import partial

import orjson
import pyarrow as pa
from starlette.datastructures import QueryParams

from app.http.bodies import MAX_BYTES
from app.serving.query import read_options
from app.serving.request import PredictionRequest, PredictionResponse
from core.datasets import columns as core
from core.datasets.formats.arrow import read_stream
from core.exceptions import Invalid, TooLarge
from core.inputs.arrow import ROWS, to_columns
from core.predictions.prediction_table import to_table, with_metadata

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
MAX_TABLE_BYTES = 4 * MAX_BYTES  # limits how far dictionaries and compression expand


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
