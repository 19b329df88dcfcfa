"""`/ui/jobs`: what is under way, what became of it, and what to do if it failed."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.dependencies import ContextDep, PagingDep
from app.schemas.common import ModelName
from app.schemas.jobs import JobResponse
from app.ui.comparison import method_charts, method_table
from app.ui.pages import show
from core.database.schema import Json
from core.jobs import comparison
from core.jobs.jobs import FINAL, Job, JobStatus

router = APIRouter(include_in_schema=False)

ADVICE = {
    "diverged": "Resumed, it would diverge again: change one of these, and train again.",
    "out_of_memory": "Train with smaller batches or a smaller network, or on a larger machine.",
    "time_limit": "Train for fewer epochs, or let whoever runs the service raise the limit. "
    "Resumed, it goes on from where it was.",
    "worker_lost": "Its workers ended in the middle of it, as when memory runs out. "
    "Look at the system; resumed, it goes on from its last checkpoint.",
    "not_found": "What it needs was deleted meanwhile. Ask anew with what there is.",
    "invalid_data": "Change what the message names, and ask anew.",
}
NEEDS_CHANGE = ("diverged", "invalid_data", "not_found")
GENERAL_ADVICE = "Resume it. If it fails again, the worker's log has more under the job's id."
KINDS = {
    "train": "Training",
    "evaluate": "Evaluation",
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
    """Newest first, by status if one is asked for."""
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
        own=_own(request),
        is_live=any(job.status not in FINAL for job in page.data),
    )


@router.get("/ui/jobs/{job_id}")
def job(request: Request, context: ContextDep, job_id: str) -> HTMLResponse:
    """A job as it stands; the page's script reads its events from the first one on."""
    found = context.jobs.get(job_id)
    error = found.error or {}
    is_compared = found.kind == "compare" and found.status in FINAL
    methods = comparison.table(context.jobs, found.id) if is_compared else []
    return show(
        request,
        "job.html",
        job=found,
        kind=KINDS.get(found.kind, found.kind),
        document=JobResponse.model_validate(found).model_dump(mode="json"),
        own=_own(request),
        is_final=found.status in FINAL,
        advice=ADVICE.get(error.get("code", ""), GENERAL_ADVICE),
        parts=context.jobs.parts(found.id) if found.kind == "compare" else [],
        table=method_table(methods) if methods else None,
        charts=method_charts(methods),
        again=_again(found),
        needs_change=error.get("code") in NEEDS_CHANGE,
    )


def _again(found: Job) -> Json | None:
    """Of a training what was asked for, to be changed and asked for again."""
    if found.kind != "train" or found.spec.get("given") is None:
        return None
    config: Json = found.spec["config"]
    body: Json = {name: found.spec[name] for name in ("model", "dataset", "alias", "metadata")}
    body["target"] = config["target"]
    for path in found.spec["given"]:
        _copy(config, body, path.split("."))
    return {name: value for name, value in body.items() if value not in (None, {})}


def _copy(config: Json, body: Json, path: list[str]) -> None:
    *parents, last = path
    for parent in parents:
        config, body = config[parent], body.setdefault(parent, {})
    if last in config:
        body[last] = config[last]


def _own(request: Request) -> str:
    """This page's address, for what of it is fetched anew."""
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path
