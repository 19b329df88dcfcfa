"""`/ui/jobs`: the list of jobs, and the page of one job with advice if it failed."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, PagingDep
from app.schemas.common import ModelName
from app.schemas.jobs import JobResponse
from app.ui.comparison import method_charts, method_table, statement
from app.ui.pages import show
from core.database.schema import Json
from core.jobs import comparison
from core.jobs.jobs import FINAL, Job, JobStatus
from core.jobs.specs import public_targets
from core.names import dotted_paths, nested

router = APIRouter(include_in_schema=False)

ADVICE = {
    "diverged": "If resumed, it would diverge again. Change one of these settings and train again.",
    "out_of_memory": "Use smaller batches, a smaller network or a larger machine.",
    "time_limit": "Train for fewer epochs, or ask the operator to raise the limit. "
    "A resumed job continues from its last checkpoint.",
    "worker_lost": "Its workers stopped unexpectedly, perhaps out of memory. Check the "
    "system page. A resumed job continues from its last checkpoint.",
    "not_found": "Something that it needs was deleted. Start a new job with existing data.",
    "invalid_data": "Correct what the message names and start a new job.",
}
NEEDS_CHANGE = ("diverged", "invalid_data", "not_found")
GENERAL_ADVICE = "Resume the job. If it fails again, look for its id in the worker's log."
KINDS = {
    "train": "Training",
    "evaluate": "Evaluation",
    "acquire": "Rows to label",
    "predict": "Predictions",
    "compare": "Comparison",
}


@router.get("/ui/jobs")
def jobs(
    request: Request,
    context: ContextDep,
    paging: PagingDep,
    status: Annotated[JobStatus | None, Query()] = None,
    model: Annotated[ModelName | None, Query()] = None,
) -> HTMLResponse:
    """Jobs, newest first, optionally of one status or one model."""
    page = context.jobs.list(status, model, paging.limit, paging.cursor)
    return show(
        request,
        "jobs.html",
        page=page,
        paging=paging,
        kinds=KINDS,
        statuses=list(JobStatus),
        status=status,
        model=model,
        address=_address(request),
        is_live=any(job.status not in FINAL for job in page.data),
    )


@router.get("/ui/jobs/{job_id}")
def job(request: Request, context: ContextDep, job_id: str) -> HTMLResponse:
    """The current state of a job. The script of the page reads all of its events."""
    found = context.jobs.get(job_id)
    error = found.error or {}
    is_compared = found.kind == "compare" and found.status in FINAL
    methods = comparison.table(context.jobs, found.id, context.row_scores) if is_compared else []
    return show(
        request,
        "job.html",
        job=found,
        kind=KINDS.get(found.kind, found.kind),
        document=JobResponse.model_validate(found).model_dump(mode="json"),
        address=_address(request),
        is_final=found.status in FINAL,
        advice=ADVICE.get(error.get("code", ""), GENERAL_ADVICE),
        parts=context.jobs.parts(found.id) if found.kind == "compare" else [],
        table=method_table(methods) if methods else None,
        statement=statement(methods),
        charts=method_charts(methods),
        again=_again(found),
        needs_change=error.get("code") in NEEDS_CHANGE,
    )


def _again(found: Job) -> Json | None:
    """The request of a training, for a changed one; None for other jobs."""
    if found.kind != "train" or found.spec.get("given") is None:
        return None
    config = dotted_paths(found.spec["config"])
    given = {path: config[path] for path in found.spec["given"] if path in config}
    others = {name: found.spec[name] for name in ("model", "dataset", "alias", "metadata")}
    body = nested(given) | others | {"target": config["target"]} | public_targets(found.spec)
    return {name: value for name, value in body.items() if value not in (None, {})}


def _address(request: Request) -> str:
    """The address of this page, which refreshes its parts from there."""
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path
