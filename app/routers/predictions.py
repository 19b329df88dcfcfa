"""`POST /predict`. It reads and writes bytes, without pydantic and FastAPI's encoder for arrays."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from fastapi import APIRouter, Request, Response

from app.dependencies import DirectRoute, Services, ServicesDep, caller_of, or_disconnect
from app.http.bodies import media_type, read_body, read_bytes, refuse_encoding, refuse_parameters
from app.http.held_memory import held_by
from app.http.idempotency import with_idempotency_key
from app.http.negotiation import negotiate
from app.openapi import json_response, option_parameters, problems, request_bodies
from app.row_files import read_row_file
from app.schemas.predictions import (
    PredictParameters,
    PredictRequest,
    PredictResponse,
    TextPredictResponse,
)
from app.serving import arrow_format, csv_format, file_format, json_format, kept
from app.serving.request import PredictionRequest, PredictionResponse
from core.datasets.files.options import ReadingOptions
from core.datasets.formats import FORM, MEDIA_TYPES
from core.exceptions import UnsupportedFormat

router = APIRouter(tags=["predictions"], route_class=DirectRoute)

JSON = "application/json"
EXPLORING = "x-credence-exploring"  # a header of the dashboard's requests
ARROW = arrow_format.MEDIA_TYPE
WRITERS: dict[str, Callable[[PredictionResponse], bytes]] = {
    JSON: json_format.write_response,
    ARROW: arrow_format.write_response,
    csv_format.MEDIA_TYPE: csv_format.write_response,
}
FORMS = (FORM, "multipart/form-data")
NO_FORM = (
    """send JSON, as in curl -H 'Content-Type: application/json' -d '{"model": "concrete", """
    """"inputs": [{"x0": 540.0}]}'; or a file of rows as the whole body, as in """
    """curl -H 'Content-Type: text/csv' --data-binary @rows.csv 'URL/predict?model=concrete'"""
)
EXAMPLE = {
    "model": "concrete",
    "version": "champion",
    "inputs": [{"x0": 540.0, "x1": 0.0}],
    "samples": 100,
    "seed": 7,
    "prune": 0.95,
    "intervals": [0.5, 0.9],
}


@router.post(
    "/predict",
    response_class=Response,
    responses={
        200: json_response(
            (PredictResponse, TextPredictResponse),
            "means, variances and intervals, in row order; a language model has the second form",
            ARROW,
            csv_format.MEDIA_TYPE,
        ),
        **problems(400, 404, 406, 413, 415, 422, 503),
    },
    openapi_extra={
        "requestBody": request_bodies(PredictRequest, EXAMPLE, binary=MEDIA_TYPES),
        "parameters": [
            *option_parameters(PredictParameters, "not with JSON"),
            *option_parameters(ReadingOptions, "only with a file"),
            kept.PARAMETER,
        ],
    },
)
async def predict(request: Request, services: ServicesDep) -> Response:
    """Predict rows: a mean, an aleatoric and an epistemic variance, and intervals for each.

    The body is JSON; or an Arrow stream or a file of rows (CSV, Excel, Parquet, …) with the options
    in the query. A file's columns are found by name, and read as those of the training data were.
    `Accept` chooses the format of the response.
    """
    request, _ = with_idempotency_key(request)
    with services.metrics.predict_request() as measure, ExitStack() as files:
        measure.exploring = request.headers.get(EXPLORING) == "1"
        wanted = negotiate(request, tuple(WRITERS))
        read_request, body, decoded_bytes = await _receive(request, services, files)
        work = services.predictor.respond(
            body,
            lambda body: (read_request(body), WRITERS[wanted]),
            measure,
            caller_of(request),
            held_by(request),
            num_bytes=decoded_bytes(body),
        )
        del body
        response = await or_disconnect(request, work)
    return Response(response, media_type=wanted)


async def _receive(
    request: Request, services: Services, files: ExitStack
) -> tuple[Callable[[bytes], PredictionRequest], bytes, Callable[[bytes], int]]:
    """The function that reads the body, the body, and the function that tells how much it is once
    decoded. The rows of a file are read here.
    """
    type_, query = media_type(request), request.query_params
    if type_ == ARROW:
        refuse_encoding(request)
        read_arrow = partial(arrow_format.read_request, query)
        return read_arrow, await read_bytes(request), arrow_format.decoded_bytes
    if type_ is not None and file_format.is_file(type_):
        read = partial(file_format.read_request, query, type_)
        advice = ", and predict it with POST /predict/batch"
        rows = await read_row_file(request, services, files, read, advice)
        return lambda _: rows, b"", len
    if type_ in FORMS:
        raise UnsupportedFormat(f"the body is a form, {type_}: {NO_FORM}")
    refuse_parameters(request)
    return json_format.read_request, await read_body(request), len
