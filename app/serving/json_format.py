"""Reads requests and writes responses of `POST /predict` in JSON."""

from dataclasses import asdict
from functools import partial
from typing import Any

import orjson

from app.http.bodies import parse, refuse_non_finite
from app.http.large_work import INLINE_BYTES
from app.schemas.predictions import PredictParameters
from app.serving.json_pieces import in_pieces
from app.serving.request import PredictionRequest, PredictionResponse
from core.inputs.records import decode_columns, num_rows, read_rows
from core.predictions.document import to_document
from core.validation import validate_again

# orjson would write an interval's fields itself, those without a value as null.
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS


def read_request(body: bytes) -> PredictionRequest:
    """The request in a body. No schema checks its rows; they are decoded later.

    Raises:
        NotParseable, Invalid: see `app.http.bodies`.
    """
    document = parse(body)
    rows = read_rows(document.pop("inputs", None))
    future: Any = document.pop("future", None)
    refuse_non_finite(document)
    return PredictionRequest.of(
        validate_again(PredictParameters, document),
        num_rows(rows.values),
        len(body),
        rows.decode,
        decode_future=None if future is None else partial(decode_columns, future, where="future"),
    )


def write_response(response: PredictionResponse) -> bytes:
    """The JSON of a response. Numbers that are not finite become null."""
    prediction = response.prediction
    document: dict[str, Any] = {} if response.id is None else {"id": response.id}
    document |= {
        "model": response.version.model,
        "version": response.version.version,
    }
    document |= to_document(prediction)
    if response.file is not None:
        document |= response.file.document()
        if response.file.kept.num_columns:
            document["kept"] = response.file.kept.to_pydict()
    elif response.notes:
        document["notes"] = response.notes
    document["timings_ms"] = response.timings.milliseconds()
    if response.num_bytes <= INLINE_BYTES:
        return orjson.dumps(document, option=OPTIONS, default=asdict)
    pieces = in_pieces(document)
    return orjson.dumps(pieces, option=OPTIONS, default=lambda one: in_pieces(asdict(one)))
