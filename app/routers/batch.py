"""`POST /predict/batch`: a job predicts many rows into one Parquet file, or to a destination."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.dependencies import ContextDep, ServicesDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.job_submission import current_request, wake
from app.offline_prediction import prepare
from app.openapi import json_request, problems
from app.schemas.jobs import JobResponse
from app.schemas.predictions import BatchRequest, EstimateResponse

router = APIRouter(tags=["predictions"], route_class=CreatingRoute)

EXAMPLE = {"model": "concrete", "version": "champion", "dataset": "ds_6f0c", "samples": 100}


@router.post(
    "/predict/batch",
    status_code=202,
    response_model=JobResponse,
    responses={
        200: {"model": EstimateResponse, "description": "with `dry_run`: what a job would take"},
        **problems(400, 404, 409, 413, 415, 422, 503),
    },
    openapi_extra=json_request(BatchRequest, EXAMPLE),
)
def predict_batch(
    request: Annotated[BatchRequest, Depends(json_body(BatchRequest))],
    response: Response,
    services: ServicesDep,
    context: ContextDep,
) -> JobResponse | Response:
    """Queue a job that predicts every row of a data set, or of a source, which is read first.

    `GET /jobs/{id}/result` has its result, unless it goes to a `destination`. A forecaster predicts
    the steps ahead of every series, which begin after its last known target; rows after that give
    the covariates. A series that cannot be forecast has one row, whose `error` says why; sums over
    series (`totals`) need every series, and the job then fails. The version, the seed, the sampler
    and the levels of adaptive intervals are resolved now, for all rows.
    """
    prepared = prepare(services, context, request)
    if request.dry_run:
        found = prepared.estimate()
        return Response(found.model_dump_json(), media_type="application/json")
    job = context.jobs.create_batch(prepared.spec, prepared.spec.rows, current_request())
    wake(context, job)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobResponse.model_validate(job)
