"""`…/sharing`: the other owners who may see a data set, a job or a model."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends

from app.dependencies import ContextDep
from app.http.bodies import json_body
from app.openapi import json_request, problems
from app.schemas.access import SharingRequest, SharingResponse
from core.access.callers import DATASET, JOB, MODEL, Kind
from core.context import Context

router = APIRouter(tags=["owners"])

EXAMPLE = {"with": ["forecasting-team"]}
READING = problems(404, 503)
WRITING: dict[str, Any] = {
    "responses": problems(400, 403, 404, 415, 422, 503),
    "openapi_extra": json_request(SharingRequest, EXAMPLE),
}
Readers = Annotated[SharingRequest, Depends(json_body(SharingRequest))]


@router.get("/datasets/{dataset_id}/sharing", responses=READING)
def get_dataset_sharing(context: ContextDep, dataset_id: str) -> SharingResponse:
    """The other owners who may see a data set."""
    return _get(context, DATASET, dataset_id)


@router.put("/datasets/{dataset_id}/sharing", **WRITING)
def share_dataset(request: Readers, context: ContextDep, dataset_id: str) -> SharingResponse:
    """Let exactly these other owners see a data set and train on it; `*` is everybody."""
    return _set(context, DATASET, dataset_id, request)


@router.get("/jobs/{job_id}/sharing", responses=READING)
def get_job_sharing(context: ContextDep, job_id: str) -> SharingResponse:
    """The other owners who may see a job."""
    return _get(context, JOB, job_id)


@router.put("/jobs/{job_id}/sharing", **WRITING)
def share_job(request: Readers, context: ContextDep, job_id: str) -> SharingResponse:
    """Let exactly these other owners see a job, its events and its result."""
    return _set(context, JOB, job_id, request)


@router.get("/models/{name}/sharing", responses=READING)
def get_model_sharing(context: ContextDep, name: str) -> SharingResponse:
    """The other owners who may see a model."""
    return _get(context, MODEL, name)


@router.put("/models/{name}/sharing", **WRITING)
def share_model(request: Readers, context: ContextDep, name: str) -> SharingResponse:
    """Let exactly these other owners see a model and predict with all its versions."""
    return _set(context, MODEL, name, request)


def _get(context: Context, kind: Kind, identifier: str) -> SharingResponse:
    return SharingResponse.of(context.shares.get(kind, identifier))


def _set(context: Context, kind: Kind, identifier: str, request: SharingRequest) -> SharingResponse:
    return SharingResponse.of(context.shares.set(kind, identifier, request.readers))
