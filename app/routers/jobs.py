"""`/jobs`: list, state, events, cancel, resume."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from app.dependencies import ContextDep, PagingDep, Services, ServicesDep
from app.http.event_streams import EventStreamResponse, is_final
from app.http.large_answers import large_answer
from app.http.negotiation import negotiate
from app.job_submission import wake
from app.openapi import problems
from app.schemas.common import JobId, ModelName, PageResponse
from app.schemas.jobs import EventResponse, JobResponse
from core.context import Context
from core.exceptions import Invalid
from core.jobs.jobs import JobStatus
from core.paging import decode_number, page_of

router = APIRouter(tags=["jobs"])
EVENTS = "events"  # the kind of cursors of event lists
JSON, STREAM = "application/json", "text/event-stream"
STREAM_SCHEMA = {
    "schema": {"type": "string", "description": "`event`, `id`, and an event in JSON as `data`"}
}
LAST_EVENT_ID = Header(
    ge=0, le=2**31 - 1, alias="Last-Event-ID", description="start after this event"
)


@router.get("/jobs", response_model=PageResponse[JobResponse], responses=problems(422, 503))
def list_jobs(
    *,
    request: Request,
    context: ContextDep,
    paging: PagingDep,
    status: Annotated[JobStatus | None, Query()] = None,
    model: Annotated[ModelName | None, Query()] = None,
    parent: Annotated[JobId | None, Query()] = None,
) -> Response:
    """Jobs, newest first; with `parent`, the trainings of that comparison."""
    page = context.jobs.list(status, model, paging.limit, paging.cursor, parent)
    return large_answer(request, PageResponse[JobResponse].model_validate(page))


@router.get("/jobs/{job_id}", response_model=JobResponse, responses=problems(404, 503))
def get_job(request: Request, context: ContextDep, job_id: str) -> Response:
    """The current state of a job."""
    return large_answer(request, JobResponse.model_validate(context.jobs.get(job_id)))


@router.post("/jobs/{job_id}/cancel", responses=problems(404, 409, 503))
def cancel(context: ContextDep, job_id: str) -> JobResponse:
    """Cancel a job: a queued one at once, a running one after its mini-batch."""
    return JobResponse.model_validate(context.jobs.cancel(job_id))


@router.post("/jobs/{job_id}/resume", responses=problems(404, 409, 503))
def resume(context: ContextDep, job_id: str) -> JobResponse:
    """Queue a failed or cancelled job again. It continues from its checkpoint."""
    job = context.jobs.resume(job_id)
    wake(context, job)
    return JobResponse.model_validate(job)


@router.get(
    "/jobs/{job_id}/events",
    response_model=PageResponse[EventResponse],
    responses=problems(404, 406, 422, 503)
    | {
        200: {"description": "a page, or a stream", "content": {STREAM: STREAM_SCHEMA}},
        204: {"description": "of a stream: `Last-Event-ID` is the last event of the job"},
    },
)
def list_events(
    *,
    request: Request,
    services: ServicesDep,
    context: ContextDep,
    paging: PagingDep,
    job_id: str,
    last_event_id: Annotated[int, LAST_EVENT_ID] = 0,
) -> Response:
    """The events of a job, oldest first: state, progress, metrics, log.

    With `Accept: text/event-stream`, a stream that also sends new events until the job ends.
    """
    if negotiate(request, (JSON, STREAM)) == STREAM:
        return _stream(request, services, context, job_id, last_event_id)
    after = last_event_id if paging.cursor is None else decode_number(EVENTS, paging.cursor)
    events = context.jobs.events(job_id, after, paging.limit + 1)
    page = page_of(EVENTS, list(events), [event.id for event in events], paging.limit)
    return large_answer(request, PageResponse[EventResponse].model_validate(page))


def _stream(
    request: Request, services: Services, context: Context, job_id: str, after: int
) -> Response:
    """The stream. All checks run before it: after its first byte, no error can be reported.

    A browser reconnects when a stream ends. Status 204 stops it.
    """
    jobs, caller = context.jobs, context.caller
    services.event_streams.check_room(caller)
    if "limit" in request.query_params or "cursor" in request.query_params:
        raise Invalid([("limit", "a stream has no pages: give Last-Event-ID as its start")])
    if after and not (last := jobs.events(job_id, after - 1, 2)):
        raise Invalid([("Last-Event-ID", f"{after} is not an event of job {job_id}: give its id")])
    if after and len(last) == 1 and is_final(last[0]):
        return Response(status_code=204)
    jobs.events(job_id, after, 1)
    identify = partial(request.app.state.key_ring.identify, request.scope)
    stream = services.event_streams.stream(jobs, job_id, after, identify, caller.share)
    return EventStreamResponse(stream)
