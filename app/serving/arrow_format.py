"""Reads requests and writes responses of `POST /predict` in Arrow's stream format.

A request has a column per feature, in any order. Null is a missing value. Numbers are not copied
until they are standardised.
"""

from functools import partial

import orjson
import pyarrow as pa
from starlette.datastructures import QueryParams

from app.http.bodies import MAX_BYTES
from app.http.large_work import INLINE_BYTES
from app.serving.query import read_options
from app.serving.request import PredictionRequest, PredictionResponse
from core.datasets import columns as core
from core.datasets.formats.arrow import read_stream
from core.datasets.formats.ipc_sizes import expanded_sizes
from core.exceptions import Invalid, TooLarge
from core.inputs.arrow import ROWS, to_columns
from core.predictions.prediction_table import beside, to_table, with_metadata

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
    num_bytes = max(len(body), table.nbytes)
    return PredictionRequest.of(parameters, table.num_rows, num_bytes, decode)


def decoded_bytes(body: bytes) -> int:
    """The size of a body once it is decoded, at most `MAX_TABLE_BYTES`.

    A kilobyte may be 200 MB: compressed, or a million times the same level of a dictionary. Large
    bodies are not looked into, because that takes time for each message.
    """
    if len(body) > INLINE_BYTES:
        return len(body)
    try:
        size = sum(expanded_sizes(pa.BufferReader(body)))
    except (pa.ArrowException, OSError, ValueError):
        size = len(body)  # broken: `read_request` says how
    return min(max(size, len(body)), MAX_TABLE_BYTES)


def write_response(response: PredictionResponse) -> bytes:
    """One record batch with a row per predicted row. The schema's metadata name the version."""
    version, prediction = response.version, response.prediction
    table = with_metadata(to_table(prediction), version.model, version.version, prediction)
    if response.file is not None:
        table = beside(response.file.kept, table)
    more = {"timings_ms": orjson.dumps(response.timings.milliseconds())}
    if response.id is not None:
        more["id"] = response.id.encode()
    if response.notes:
        more["notes"] = orjson.dumps(response.notes)
    if response.file is not None:
        more["kept"] = orjson.dumps(response.file.kept.column_names)
        more |= {name: orjson.dumps(value) for name, value in response.file.document().items()}
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
