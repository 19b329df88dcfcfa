"""Reads requests and writes responses of `POST /predict` in JSON."""

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import orjson

from app.http.bodies import parse, refuse_non_finite
from app.http.validation import validate_again
from app.schemas.predictions import PredictParameters
from app.serving.inputs import decode, decode_columns, num_rows
from app.serving.request import PredictionRequest, PredictionResponse
from models.joint.prediction import JointPrediction
from models.prediction.prediction import Interval, Prediction, RowPrediction

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
        "prune": prediction.prune,
        "samples": prediction.samples,
        "seed": prediction.seed,
        "sampler": prediction.sampler,
    }
    document |= _members(prediction)
    if isinstance(prediction, JointPrediction):
        document["targets"] = {name: _members(one) for name, one in prediction.targets.items()}
    if response.file is not None:
        document |= asdict(response.file)
    document["timings_ms"] = response.timings.milliseconds()
    return orjson.dumps(document, option=OPTIONS, default=_record)


def _members(prediction: Prediction) -> dict[str, Any]:
    """The outputs and answers of a prediction."""
    document: dict[str, Any] = {}
    for output in prediction.outputs:
        values = output.values(prediction)
        if values is not None or output.is_nullable:
            *outer, name = output.member.split(".")
            place = document.setdefault(outer[0], {}) if outer else document
            place[name] = _ready(values)
    if isinstance(prediction, RowPrediction):
        document |= {name: answer.document() for name, answer in prediction.answers.items()}
    return document


def _ready(values: Any) -> Any:
    """Values for orjson: arrays are contiguous in memory, times are RFC 3339 texts."""
    if not isinstance(values, np.ndarray):
        return values
    if values.dtype.kind == "M":
        return rfc3339(values)
    return values if values.flags.c_contiguous else np.ascontiguousarray(values)


def rfc3339(times: np.ndarray) -> list[Any]:
    """Datetimes as texts; times that are numbers stay so."""
    if not np.issubdtype(times.dtype, np.datetime64):
        return list(times.tolist())
    return [moment.isoformat() + "Z" for moment in times.astype("datetime64[us]").tolist()]


def _record(record: Any) -> dict[str, Any]:
    """The members of a dataclass. Intervals leave out the members of other kinds."""
    return _interval(record) if isinstance(record, Interval) else asdict(record)


def _interval(interval: Interval) -> dict[str, Any]:
    lower, upper = _ready(interval.lower), _ready(interval.upper)
    adapted = {"adapted_level": interval.adapted_level} if interval.kind == "adaptive" else {}
    of = {"level": interval.level, "kind": interval.kind}
    return {**of, **adapted, "lower": lower, "upper": upper}
