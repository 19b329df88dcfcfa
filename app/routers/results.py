"""`GET /jobs/{id}/result`: what a job in parts came to, in the form that its kind has."""

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.dependencies import ContextDep
from app.http.negotiation import negotiate
from app.openapi import json_response, problems
from app.pictures import draw_comparison
from app.schemas.compare import CompareResponse
from core.context import Context
from core.jobs import comparison
from core.jobs.jobs import Job
from core.jobs.results import join

router = APIRouter(tags=["jobs"])

JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"
SVG = "image/svg+xml"
DESCRIPTION = (
    "of an offline prediction one row per row of the data set, in its order; of a comparison one "
    "row per method, or a picture of the table"
)


@router.get(
    "/jobs/{job_id}/result",
    response_class=Response,
    responses={
        200: json_response(CompareResponse, DESCRIPTION, PARQUET, SVG),
        **problems(404, 406, 409, 503),
    },
)
def get_result(request: Request, context: ContextDep, job_id: str) -> Response:
    """Predictions as one Parquet file; a comparison's table as JSON, or SVG if `Accept` says so."""
    job = context.jobs.get(job_id)
    return _compared(request, context, job) if job.kind == "compare" else _predicted(context, job)


def _predicted(context: Context, job: Job) -> Response:
    paths = context.results.paths(job.id)
    name = f'attachment; filename="{job.id}.parquet"'
    return StreamingResponse(join(paths), media_type=PARQUET, headers={"Content-Disposition": name})


def _compared(request: Request, context: Context, job: Job) -> Response:
    wanted = negotiate(request, (JSON, SVG))
    rows = comparison.table(context.jobs, job.id)
    if wanted == SVG:
        return Response(draw_comparison(job.model, rows), media_type=SVG)
    return Response(orjson.dumps({"data": rows}), media_type=JSON)
