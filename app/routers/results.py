"""`GET /jobs/{id}/result`: the rows of an offline prediction, or the table of a comparison."""

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.dependencies import ContextDep
from app.http.negotiation import negotiate
from app.openapi import json_response, problems
from app.schemas.compare import CompareResponse
from app.ui.comparison import render_comparison
from app.ui.pages import page
from core.context import Context
from core.jobs import comparison
from core.jobs.jobs import Job
from core.jobs.results import join

router = APIRouter(tags=["jobs"])

JSON = "application/json"
PARQUET = "application/vnd.apache.parquet"
HTML = "text/html"
DESCRIPTION = (
    "offline prediction: one row per row of the data set, in its order; comparison: one row per "
    "method, as JSON or as a page with charts"
)


@router.get(
    "/jobs/{job_id}/result",
    response_class=Response,
    responses={
        200: json_response(CompareResponse, DESCRIPTION, PARQUET, HTML),
        **problems(404, 406, 409, 503),
    },
)
def get_result(request: Request, context: ContextDep, job_id: str) -> Response:
    """The result of a job: predictions as one Parquet file, or a comparison's table as JSON.

    With `Accept: text/html`, which browsers send, a comparison is a page with charts.
    """
    job = context.jobs.get(job_id)
    return _compared(request, context, job) if job.kind == "compare" else _predicted(context, job)


def _predicted(context: Context, job: Job) -> Response:
    paths = context.results.paths(job.id)
    name = f'attachment; filename="{job.id}.parquet"'
    return StreamingResponse(join(paths), media_type=PARQUET, headers={"Content-Disposition": name})


def _compared(request: Request, context: Context, job: Job) -> Response:
    wanted = negotiate(request, (JSON, HTML))
    rows = comparison.table(context.jobs, job.id, context.row_scores)
    if wanted == HTML:
        return page(render_comparison(job.model, rows))
    return Response(orjson.dumps({"data": rows}), media_type=JSON)
