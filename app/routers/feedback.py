"""`/feedback`: labels of predicted rows, and the scores of a model on them."""

from contextlib import ExitStack
from functools import partial

import orjson
from fastapi import APIRouter, Request, Response

from app.dependencies import ContextDep, Services, ServicesDep, caller_of, or_disconnect
from app.http.bodies import (
    in_turn,
    media_type,
    parse,
    read_body,
    refuse_non_finite,
    refuse_parameters,
)
from app.http.idempotency import JSON, CreatingRoute
from app.labelled_file import read_labelled_file
from app.openapi import json_response, option_parameters, problems, request_bodies
from app.row_files import read_row_file
from app.schemas.common import Json
from app.schemas.feedback import (
    FeedbackParameters,
    FeedbackRequest,
    FeedbackResponse,
    FileParameters,
    RollingResponse,
)
from app.serving import file_format
from app.serving.prediction_store import request_of
from app.serving.request import PredictionRequest
from app.serving.scoring import ScoredRows, bounded, score
from core.access.idempotency import Reply
from core.context import Context
from core.datasets.files.options import ReadingOptions
from core.datasets.formats import MEDIA_TYPES
from core.exceptions import Invalid
from core.inputs.records import decode_columns, num_rows, read_rows
from core.predictions.feedback import Added, Rolling, describe
from core.validation import validate

router = APIRouter(tags=["feedback"], route_class=CreatingRoute)

EXAMPLE = {"prediction": "pred_7c1e", "truth": [41.9, None]}
ANSWER = "the scores of these rows, and of the version's window with them"


@router.post(
    "/feedback",
    response_class=Response,
    status_code=201,
    responses={
        200: json_response(FeedbackResponse, f"the labels replace earlier ones: {ANSWER}"),
        201: json_response(FeedbackResponse, ANSWER),
        **problems(400, 404, 413, 415, 422, 503),
    },
    openapi_extra={
        "requestBody": request_bodies(FeedbackRequest, EXAMPLE, binary=MEDIA_TYPES),
        "parameters": [
            *option_parameters(FileParameters, "only with a file"),
            *option_parameters(ReadingOptions, "only with a file"),
        ],
    },
)
async def add_feedback(request: Request, services: ServicesDep) -> Response:
    """Send the labels of a stored prediction, or rows with their labels.

    New labels of a stored prediction replace its earlier ones. Rows with labels count each time.
    The body is JSON; or a file of rows (CSV, Excel, Parquet, …), which is read as by `/predict`.
    """
    type_ = media_type(request)
    if type_ is not None and file_format.is_file(type_):
        return await _add_file(request, services, type_)
    refuse_parameters(request)
    body = await read_body(request)
    parameters, rows, truth, weights = await in_turn(request, len(body), _read, body)
    seen = services.context.for_caller(caller_of(request))
    labelled = await _request(services, seen, parameters, rows, len(body))
    await _check(request, services, labelled, parameters.prediction)
    scoring = score(services.predictor, labelled, lambda _: truth, caller_of(request), weights)
    scored = bounded(await or_disconnect(request, scoring))
    report: Json = {"notes": labelled.notes} if labelled.notes else {}
    return await _add(request, services, scored, parameters.prediction, report)


async def _add_file(request: Request, services: Services, type_: str) -> Response:
    """Feedback whose rows and labels are in a file."""
    with ExitStack() as files:
        read = partial(read_labelled_file, request.query_params, type_)
        file = await read_row_file(request, services, files, read, ", and send the labels in parts")
        await _check(request, services, file.request)
        scoring = score(services.predictor, file.request, file.truth, caller_of(request))
        try:
            scored = bounded(await or_disconnect(request, scoring))
        except Invalid as error:
            raise file.located(error) from error
        return await _add(request, services, scored, report=file.rows.report.document())


async def _check(
    request: Request,
    services: Services,
    labelled: PredictionRequest,
    prediction: str | None = None,
) -> None:
    """Raise an error unless the caller may send labels of this model or prediction."""
    caller = caller_of(request)
    check = services.context.for_caller(caller).feedback.check
    await services.plain.run(caller.share, check, labelled.model, prediction)


async def _add(
    request: Request,
    services: Services,
    scored: ScoredRows,
    prediction: str | None = None,
    report: Json | None = None,
) -> Response:
    """Store the scores; `report` says how the rows were read."""
    caller, version = caller_of(request), scored.version
    window = services.context.settings.feedback_rows
    write = partial(_write, prediction, scored, window, report or {})
    added = await services.plain.run(
        caller.share,
        services.context.for_caller(caller.with_reply(write)).feedback.add,
        version.model,
        version.version,
        scored.scores,
        prediction,
        scored.reference,
    )
    services.metrics.feedback_rows.labels(version.model).inc(added.new_rows)
    answer = write(added)
    return Response(answer.body, answer.status, dict(answer.headers))


@router.delete("/feedback/{feedback_id}", status_code=204, responses=problems(403, 404, 503))
def withdraw_feedback(context: ContextDep, feedback_id: str) -> None:
    """Delete the scores of labels by the `id` of the response that they got.

    The scores of the version's window are computed without them.
    """
    context.feedback.withdraw(feedback_id)


@router.delete("/predictions/{prediction_id}", status_code=204, responses=problems(404, 503))
def delete_prediction(context: ContextDep, prediction_id: str) -> None:
    """Delete a stored prediction. It takes no more labels. The scores of earlier labels stay."""
    context.stored_predictions.delete(prediction_id)


@router.get("/models/{name}/feedback", responses=problems(404, 503))
def get_feedback(context: ContextDep, name: str, version: str | None = None) -> RollingResponse:
    """The scores of a version on its newest labelled rows; by default of the newest version."""
    found = context.registry.get(name, version)
    rolling = context.feedback.rolling(found.model, found.version)
    return RollingResponse.model_validate(_rolling(rolling, context.settings.feedback_rows))


def _read(body: bytes) -> tuple[FeedbackParameters, Json, object, object]:
    """The parameters, the rows if there are any, the labels, and the rows' weights.

    Raises:
        NotParseable, Invalid: see `app.http.bodies`. Also `Invalid` if the body names both a stored
            prediction and a model, or neither.
    """
    document = parse(body)
    rows: Json = {name: document.pop(name) for name in ("inputs", "future") if name in document}
    truth, weights = document.pop("truth", None), document.pop("weights", None)
    refuse_non_finite(document)
    parameters = validate(FeedbackParameters, document)
    if (parameters.prediction is None) == (parameters.model is None):
        raise Invalid([("/prediction", "give either prediction, or model and inputs")])
    if parameters.prediction is not None:
        others = [name for name in ({*document} | {*rows}) if name != "prediction"]
        if others:
            message = "is the stored prediction's: leave it out"
            raise Invalid([(f"/{name}", message) for name in sorted(others)])
    return parameters, rows, truth, weights


async def _request(
    services: Services, context: Context, parameters: FeedbackParameters, rows: Json, num_bytes: int
) -> PredictionRequest:
    if parameters.prediction is not None:
        stored = context.stored_predictions
        get, share = stored.get, context.caller.share
        return request_of(await services.plain.run(share, get, parameters.prediction))
    inputs = read_rows(rows.get("inputs"))
    future = rows.get("future")
    return PredictionRequest(
        model=str(parameters.model),
        version=parameters.version,
        options=parameters.options,
        num_rows=num_rows(inputs.values),
        num_bytes=num_bytes,
        decode=inputs.decode,
        decode_future=None if future is None else partial(decode_columns, future, where="future"),
    )


def _write(
    prediction: str | None, scored: ScoredRows, window: int, report: Json, added: Added
) -> Reply:
    document = _document(prediction, scored, added, window) | report
    status = 201 if added.is_new else 200
    return Reply(status, JSON, orjson.dumps(document, option=orjson.OPT_UTC_Z))


def _document(prediction: str | None, scored: ScoredRows, added: Added, window: int) -> Json:
    metrics = describe(scored.scores, scored.version.description.get("metrics") or {})
    return {
        "id": added.id,
        "prediction": prediction,
        "model": scored.version.model,
        "version": scored.version.version,
        "rows": metrics["rows"],
        "metrics": metrics,
        "rolling": _rolling(added.rolling, window),
    }


def _rolling(rolling: Rolling, window: int) -> Json:
    return {
        "model": rolling.model,
        "version": rolling.version,
        "window": window,
        "updated_at": rolling.updated_at,
        "metrics": rolling.metrics or {"rows": 0},
    }
