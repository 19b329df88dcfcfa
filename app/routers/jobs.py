"""`/jobs`: what became of the work that was asked for."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Header, Query

from app.dependencies import ContextDep, PagingDep
from app.errors import NotAcceptable
from app.openapi import problems
from app.schemas.common import JobId, ModelName, PageResponse
from app.schemas.jobs import EventResponse, JobResponse
from app.submission import wake
from core.events import Event
from core.jobs import JobStatus
from core.paging import Page, decode_number, page_of

router = APIRouter(tags=["jobs"])
EVENTS = "events"  # what the cursors of event lists are for


@router.get("/jobs", responses=problems(422, 503))
def list_jobs(
    context: ContextDep,
    paging: PagingDep,
    status: Annotated[JobStatus | None, Query()] = None,
    model: Annotated[ModelName | None, Query()] = None,
    parent: Annotated[JobId | None, Query()] = None,
) -> PageResponse[JobResponse]:
    """Jobs, newest first; the trainings of a comparison are those that it is the `parent` of."""
    page = context.jobs.list(status, model, paging.limit, paging.cursor, parent)
    return PageResponse[JobResponse].model_validate(page)


@router.get("/jobs/{job_id}", responses=problems(404, 503))
def get_job(context: ContextDep, job_id: str) -> JobResponse:
    """A job as it stands now."""
    return JobResponse.model_validate(context.jobs.get(job_id))


@router.post("/jobs/{job_id}/cancel", responses=problems(404, 409, 503))
def cancel(context: ContextDep, job_id: str) -> JobResponse:
    """Cancel a queued job; ask a running one to stop between two mini-batches."""
    return JobResponse.model_validate(context.jobs.cancel(job_id))


@router.post("/jobs/{job_id}/resume", responses=problems(404, 409, 503))
def resume(context: ContextDep, job_id: str) -> JobResponse:
    """Queue a failed or cancelled job again; it goes on from its checkpoint."""
    job = context.jobs.resume(job_id)
    wake(context, job)
    return JobResponse.model_validate(job)


@router.get("/jobs/{job_id}/events", responses=problems(404, 406, 422, 503))
def list_events(
    context: ContextDep,
    paging: PagingDep,
    job_id: str,
    accept: Annotated[str, Header(include_in_schema=False)] = "*/*",
) -> PageResponse[EventResponse]:
    """What happened to a job, oldest first: state, progress, metrics, log."""
    if accept.partition(";")[0].strip() == "text/event-stream":
        raise NotAcceptable("events come as application/json for now, not as an event stream")
    after = 0 if paging.cursor is None else decode_number(EVENTS, paging.cursor)
    events = context.jobs.events(job_id, after, paging.limit + 1)
    return PageResponse[EventResponse].model_validate(_page(events, paging.limit))


def _page(events: Sequence[Event], limit: int) -> Page[EventResponse]:
    responses = [EventResponse.of(event) for event in events]
    return page_of(EVENTS, responses, [event.id for event in events], limit)
