"""Reads requests and writes responses of the protocol.

A body is JSON, or JSON followed by the binary data of the tensors in their order.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import orjson

from app.http.bodies import Document, parse, refuse_non_finite
from app.schemas.inference_protocol import InferHeader, InputHeader, OutputHeader
from app.schemas.predictions import PredictParameters
from app.serving.inference_protocol import outputs
from app.serving.inference_protocol.inputs import to_columns
from app.serving.inference_protocol.tensors import (
    Tensor,
    datatype_of,
    from_bytes,
    from_json,
    to_bytes,
)
from app.serving.predictor import Write
from app.serving.query import LISTS, OBJECTS, scalar, value_of
from app.serving.request import PredictionRequest, PredictionResponse
from core.exceptions import Invalid, NotParseable
from core.predictions.document import adapted_levels
from core.validation import validate_again
from models.exceptions import InvalidInput
from models.prediction.options import KINDS
from models.prediction.outputs.questions import QUESTIONS
from models.prediction.prediction import Prediction

PARAMETERS = "/parameters"
BINARY, TIMEOUT, ABSTAIN = "binary_data_output", "timeout", "abstain_above"
DEFAULT_LEVEL = 0.9
# `model` and `version` come from the path, `return_draws` and `interval_kinds` from the outputs.
# The protocol does not support `store`.
NOT_PARAMETERS = (
    "model",
    "version",
    "return_draws",
    "return_mc_errors",  # no tensor holds them
    "interval_kinds",
    "store",
)
MICROSECONDS = 1000  # in a millisecond


@dataclass(frozen=True)
class Reply:
    """The body of a response.

    Args:
        header_length: bytes of its JSON if binary data follow, else None.
    """

    body: bytes
    header_length: int | None


def read_request(
    model: str, version: str | None, header_length: int | None, body: bytes
) -> tuple[PredictionRequest, Write[Reply]]:
    """The request in a body, and the function that writes its response.

    Args:
        header_length: bytes of the JSON if binary data follow, else None.

    Raises:
        NotParseable: the JSON is wrong, or does not state the length of the binary data.
        Invalid: a field is wrong; the error names it.
    """
    length = len(body) if header_length is None else header_length
    if length > len(body):
        raise NotParseable(
            f"Inference-Header-Content-Length is {length}, but the body has {len(body)} bytes"
        )
    document = parse(body[:length])
    data = _take_data(document)
    refuse_non_finite(document)
    header = validate_again(InferHeader, document)
    if header.model_name not in (None, model):
        raise Invalid([("/model_name", f"the path says {model!r}")])
    tensors = _tensors(header.inputs, data, memoryview(body)[length:])
    parameters, decode = _options(model, version, header), partial(to_columns, tensors)
    request = PredictionRequest.of(parameters, _num_rows(tensors), len(body), decode)
    return request, partial(write_response, header)


def write_response(header: InferHeader, response: PredictionResponse) -> Reply:
    """The requested outputs, in binary if requested."""
    prediction = response.prediction
    arrays = outputs.select(prediction, _wanted(header))
    binary = {name: to_bytes(arrays[name]) for name in _binary_names(header, list(arrays))}
    document: Document = {
        "model_name": response.version.model,
        "model_version": str(response.version.version),
        **({} if header.id is None else {"id": header.id}),
        "parameters": {
            "samples": prediction.samples,
            "seed": prediction.seed,
            "sampler": prediction.sampler,
            "prune": prediction.prune,
            **_adapted(prediction),
        },
        "outputs": [_output(name, array, binary) for name, array in arrays.items()],
    }
    text = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    return Reply(b"".join([text, *binary.values()]), len(text) if binary else None)


def _adapted(prediction: Prediction) -> dict[str, Any]:
    """The levels at which adaptive intervals are given, in the order of the levels, as text."""
    levels = adapted_levels(prediction).values()
    return {"adapted_levels": ",".join(map(str, levels))} if levels else {}


@contextmanager
def parameters_located() -> Iterator[None]:
    """Correct the paths of errors in the block: in this protocol, options are in `parameters`."""
    try:
        yield
    except Invalid as error:
        raise Invalid([(_located(path), message) for path, message in error.errors]) from None
    except InvalidInput as error:
        raise Invalid([(_located(error.path), error.message)]) from None


def _located(path: str) -> str:
    name = path.removeprefix("/").partition("/")[0]
    if name == "interval_kinds":
        return "/outputs"  # they decide the kinds
    is_option = name in PredictParameters.model_fields and name not in NOT_PARAMETERS
    return PARAMETERS + path if is_option else path


def _take_data(document: Document) -> list[Any]:
    """Remove the `data` of each input, so that no schema checks them; `...` if there are none."""
    inputs = document.get("inputs")
    if not isinstance(inputs, list):
        return []
    return [item.pop("data", ...) if isinstance(item, dict) else ... for item in inputs]


def _tensors(headers: Sequence[InputHeader], data: list[Any], binary: memoryview) -> list[Tensor]:
    tensors, position = [], 0
    for i, (header, values) in enumerate(zip(headers, data, strict=True)):
        path = f"/inputs/{i}"
        size = None if header.parameters is None else header.parameters.binary_data_size
        if (size is None) == (values is ...):
            raise Invalid([(path, "give either data, or parameters.binary_data_size")])
        if not prod(header.shape):
            raise Invalid([(f"{path}/shape", "is empty: give at least one row")])
        if size is None:
            array = from_json(values, header.datatype, header.shape, path)
        else:
            if position + size > len(binary):
                raise NotParseable(f"the body ends inside the data of {header.name!r}")
            part = binary[position : position + size]
            array = from_bytes(part, header.datatype, header.shape, path)
            position += size
        tensors.append(Tensor(header.name, header.datatype, array, path))
    if position != len(binary):
        raise NotParseable(f"{len(binary) - position} bytes at the end belong to no input")
    return tensors


def _num_rows(tensors: Sequence[Tensor]) -> int:
    """The number of rows, which must be the same in all tensors."""
    rows, seen = tensors[0].shape[0], set()
    for tensor in tensors:
        if tensor.name in seen:
            raise tensor.invalid("is given twice")
        if tensor.shape[0] != rows:
            raise tensor.invalid(f"has {tensor.shape[0]} rows, but the first tensor has {rows}")
        seen.add(tensor.name)
    return rows


def _options(model: str, version: str | None, header: InferHeader) -> PredictParameters:
    given: dict[str, Any] = {k: v for k, v in (header.parameters or {}).items() if v is not None}
    if unknown := [name for name in NOT_PARAMETERS if name in given]:
        raise Invalid([(f"{PARAMETERS}/{name}", "unknown parameter") for name in unknown])
    if not isinstance(given.pop(BINARY, False), bool):
        raise Invalid([(f"{PARAMETERS}/{BINARY}", "must be true or false")])
    if TIMEOUT in given:
        given["deadline_ms"] = _milliseconds(given.pop(TIMEOUT))
    names = _wanted(header)
    outputs.check_names(names or ())
    _check_abstaining(given, names)
    _check_questions(given, names)
    options = {
        "model": model,
        "version": version,
        "return_draws": outputs.DRAWS in (names or ()),
        **{name: _structured(name, value) for name, value in given.items()},
        "intervals": _intervals(given.get("intervals"), names),
        "interval_kinds": _kinds(names),
    }
    try:
        return validate_again(PredictParameters, options)
    except Invalid as error:
        raise Invalid([(PARAMETERS + path, message) for path, message in error.errors]) from None


def _structured(name: str, value: object) -> Any:
    """Lists and objects come as text: parameters are texts, numbers, and true or false."""
    return value_of(name, value) if name in (*LISTS, *OBJECTS) and isinstance(value, str) else value


def _kinds(names: list[str] | None) -> list[str]:
    """The kinds of intervals or sets that the requested outputs need, by default credible ones."""
    asked = set(names or ())
    return [kind for kind in KINDS if asked & outputs.OF_KIND[kind]] or ["credible"]


def _intervals(given: object, names: list[str] | None) -> list[Any]:
    """The levels, which come as text; empty if no output needs them."""
    wanted = set(outputs.BOUNDS) & set(names or ())
    if given is None:
        return [DEFAULT_LEVEL] if wanted else []
    if names is not None and not wanted:
        message = f"are returned as the output {outputs.QUANTILES!r}: request it too"
        raise Invalid([(f"{PARAMETERS}/intervals", message)])
    return [scalar(part) for part in str(given).split(",") if part]


def _check_abstaining(given: dict[str, Any], names: list[str] | None) -> None:
    """Raise `Invalid` for `abstain_above` without its output, or the output without it."""
    requested = names is not None and outputs.ABSTAINED in names
    if ABSTAIN in given and names is not None and not requested:
        message = f"is returned as the output {outputs.ABSTAINED!r}: request it too"
        raise Invalid([(f"{PARAMETERS}/{ABSTAIN}", message)])
    if requested and ABSTAIN not in given:
        message = f"the output {outputs.ABSTAINED!r} needs this number: give it"
        raise Invalid([(f"{PARAMETERS}/{ABSTAIN}", message)])


def _check_questions(given: dict[str, Any], names: list[str] | None) -> None:
    """Raise `Invalid` for an option that asks for outputs, if none of them is requested."""
    for question in QUESTIONS if names is not None else ():
        tensors = outputs.of_option(question.option)
        if question.option in given and not set(tensors) & set(names or ()):
            message = f"is returned as {' and '.join(map(repr, tensors))}: request it too"
            raise Invalid([(f"{PARAMETERS}/{question.option}", message)])


def _milliseconds(timeout: object) -> object:
    """Milliseconds of the protocol's microseconds. The schema refuses anything but a number."""
    return timeout / MICROSECONDS if type(timeout) in (int, float) else timeout  # type: ignore[operator]


def _wanted(header: InferHeader) -> list[str] | None:
    """The names of the requested outputs; None for the standard ones."""
    return [output.name for output in header.outputs] if header.outputs else None


def _binary_names(header: InferHeader, names: list[str]) -> list[str]:
    requested: dict[str, OutputHeader] = {output.name: output for output in header.outputs or ()}
    default = (header.parameters or {}).get(BINARY) is True

    def is_binary(name: str) -> bool:
        parameters = requested[name].parameters if name in requested else None
        own = None if parameters is None else parameters.binary_data
        return default if own is None else own

    return [name for name in names if is_binary(name)]


def _output(name: str, array: np.ndarray, binary: dict[str, bytes]) -> dict[str, Any]:
    document = {"name": name, "datatype": datatype_of(array), "shape": list(array.shape)}
    if name in binary:
        return document | {"parameters": {"binary_data_size": len(binary[name])}}
    flat = np.ascontiguousarray(array).reshape(-1)
    return document | {"data": flat.tolist() if array.dtype == object else flat}
