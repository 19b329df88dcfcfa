"""`POST /train`: queues a training job."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.dependencies import ContextDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.job_submission import enqueue, resolve_training
from app.openapi import json_request, problems
from app.schemas.jobs import JobResponse
from app.schemas.training import TrainRequest

router = APIRouter(tags=["training"], route_class=CreatingRoute)

EXAMPLE = {
    "model": "concrete",
    "dataset": "ds_6f0c",
    "target": "y",
    "network": {"kind": "mlp", "hidden": [50]},
    "training": {"epochs": 200},
    "alias": "champion",
}


@router.post(
    "/train",
    status_code=202,
    responses=problems(400, 413, 415, 422, 503),
    openapi_extra=json_request(TrainRequest, EXAMPLE),
)
def train(
    request: Annotated[TrainRequest, Depends(json_body(TrainRequest))],
    response: Response,
    context: ContextDep,
) -> JobResponse:
    """Queue a training job. The recommended recipe supplies all settings that are left out."""
    job = enqueue(context, resolve_training(context, request))
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobResponse.model_validate(job)
