"""`POST /predict`. Bytes go in and come out: arrays meet neither pydantic nor FastAPI's encoder."""

from fastapi import APIRouter, Request, Response

from app.bodies import read_body
from app.dependencies import ServicesDep, or_disconnect
from app.openapi import json_request, json_response, problems
from app.schemas.predictions import PredictRequest, PredictResponse
from app.serving.json_format import answer_json

router = APIRouter(tags=["predictions"])

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
        200: json_response(PredictResponse, "means, variances and intervals, in row order"),
        **problems(400, 404, 413, 415, 422, 503),
    },
    openapi_extra=json_request(PredictRequest, EXAMPLE),
)
async def predict(request: Request, services: ServicesDep) -> Response:
    """Predict rows: a mean, an aleatoric and an epistemic variance, intervals, for each."""
    with services.metrics.predict_request() as measure:
        body = await read_body(request)
        work = answer_json(body, services.predictor, services.metrics, measure)
        del body
        answer = await or_disconnect(request, work)
    return Response(answer, media_type="application/json")
