"""Reads requests and writes responses of `POST /predict` in JSON."""

from dataclasses import asdict
from functools import partial
from typing import Any

import orjson

from app.http.bodies import parse, refuse_non_finite
from app.schemas.predictions import PredictParameters
from app.serving.request import PredictionRequest, PredictionResponse
from core.inputs.records import decode, decode_columns, num_rows
from core.predictions.document import record, to_document
from core.validation import validate_again

# orjson would write an interval's fields itself, those without a value as null.
OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_PASSTHROUGH_DATACLASS


def read_request(body: bytes) -> PredictionRequest:
    """The request in a body. No schema checks its rows; they are decoded later.

    Raises:
        NotParseable, Invalid: see `app.http.bodies`.
    """
    document = parse(body)
    inputs: Any = document.pop("inputs", None)
    future: Any = document.pop("future", None)
    refuse_non_finite(document)
    return PredictionRequest.of(
        validate_again(PredictParameters, document),
        num_rows(inputs),
        len(body),
        partial(decode, inputs),
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
        document |= asdict(response.file)
    document["timings_ms"] = response.timings.milliseconds()
    return orjson.dumps(document, option=OPTIONS, default=record)
