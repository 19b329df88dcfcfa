"""`/schedules`: trainings that are repeated, and their runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from app.dependencies import ContextDep, PagingDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.http.large_answers import large_answer
from app.job_submission import find_dataset, given_configs, resolve_training, wake
from app.openapi import json_request, problems
from app.schemas.common import PageResponse
from app.schemas.schedules import RunResponse, ScheduleRequest, ScheduleResponse
from core.access.callers import View
from core.context import Context
from core.exceptions import Invalid
from core.jobs.specs import Scheduled, TrainSpec
from core.schedules.schedules import UTC_NAME, When
from models.exceptions import InvalidData

router = APIRouter(tags=["schedules"], route_class=CreatingRoute)

CHAMPION = "champion"  # the alias of a training that names none
GATED = ("regression", "classification")
EXAMPLE = {
    "name": "nightly",
    "train": {"model": "concrete", "dataset": "ds_6f0c", "target": "y"},
    "cron": "0 3 * * *",
    "time_zone": "Europe/Paris",
    "gate": {"metric": "log_likelihood", "max_loss": 0.02, "min_coverage": 0.87},
}


@router.post(
    "/schedules",
    status_code=201,
    responses=problems(400, 403, 409, 413, 415, 422, 503),
    openapi_extra=json_request(ScheduleRequest, EXAMPLE),
)
def create_schedule(
    request: Annotated[ScheduleRequest, Depends(json_body(ScheduleRequest))],
    response: Response,
    context: ContextDep,
) -> ScheduleResponse:
    """Repeat a training, and move its alias only if the new version is not worse.

    Each run reads the data set's source again, if it has one, trains, and compares the new version
    with the one that has the alias, on the newest rows.
    """
    when = _when(request)
    with _under("/train"):
        spec, sent = _resolve(context, request)
    made = context.schedules.create(request.name, spec, when, sent)
    response.headers["Location"] = f"/schedules/{made.name}"
    return ScheduleResponse.model_validate(made)


@router.get(
    "/schedules", response_model=PageResponse[ScheduleResponse], responses=problems(422, 503)
)
def list_schedules(request: Request, context: ContextDep, paging: PagingDep) -> Response:
    """All schedules, newest first."""
    page = context.schedules.list(paging.limit, paging.cursor)
    return large_answer(request, PageResponse[ScheduleResponse].model_validate(page))


@router.get("/schedules/{name}", response_model=ScheduleResponse, responses=problems(404, 503))
def get_schedule(request: Request, context: ContextDep, name: str) -> Response:
    """A schedule and its newest runs."""
    return large_answer(request, ScheduleResponse.model_validate(context.schedules.get(name)))


@router.get(
    "/schedules/{name}/runs",
    response_model=PageResponse[RunResponse],
    responses=problems(404, 422, 503),
)
def list_runs(request: Request, context: ContextDep, name: str, paging: PagingDep) -> Response:
    """All runs of a schedule, newest first."""
    page = context.schedules.runs(name, paging.limit, paging.cursor)
    return large_answer(request, PageResponse[RunResponse].model_validate(page))


@router.post("/schedules/{name}/run", status_code=202, responses=problems(404, 409, 429, 503))
def run_schedule(context: ContextDep, name: str, response: Response) -> RunResponse:
    """Run a schedule now, whenever it is due. One run at a time."""
    run = context.schedules.run(name)
    wake(context, context.jobs.get(str(run.job)))
    response.headers["Location"] = f"/jobs/{run.job}"
    return RunResponse.model_validate(run)


@router.delete("/schedules/{name}", status_code=204, responses=problems(404, 503))
def delete_schedule(context: ContextDep, name: str) -> None:
    """Delete a schedule and its list of runs. A job that has begun goes on."""
    context.schedules.delete(name)


def _when(request: ScheduleRequest) -> When:
    if (request.cron is None) == (request.on is None):
        raise Invalid([("/cron", "give either cron or on")])
    if request.cron is None and request.time_zone != UTC_NAME:
        raise Invalid([("/time_zone", "is for cron: a refresh has no clock time")])
    return When(request.cron, request.time_zone)


def _resolve(context: Context, request: ScheduleRequest) -> tuple[TrainSpec, dict[str, object]]:
    """The training of the first run, and the request for it.

    It is resolved as runs are: by what the owner may see, even if an administrator asks.
    """
    view = View(context.caller.owner, sees_all=False)
    own = context.for_caller(replace(context.caller, view=view))
    train = request.train
    dataset = find_dataset(own, train)
    train = train.model_copy(update={"dataset": dataset.id, "data": None})
    spec = resolve_training(own, train)
    task = spec.config.task
    if task not in GATED or spec.others:
        what = "several targets" if spec.others else f"a {str(task).replace('_', ' ')}"
        message = f"would be {what}, and a gate compares rows: give one target of rows of a table"
        raise Invalid([("/target", message)])
    configs = tuple(given_configs(train, dataset))
    alias = train.alias or CHAMPION
    scheduled = Scheduled(schedule=request.name, gate=request.gate, configs=configs)
    spec = spec.model_copy(update={"alias": alias, "scheduled": scheduled})
    return spec, train.sent(dataset.id)


@contextmanager
def _under(path: str) -> Iterator[None]:
    """Errors in a member of the body have pointers into the body."""
    try:
        yield
    except Invalid as error:
        raise Invalid([(f"{path}{place}", message) for place, message in error.errors]) from error
    except InvalidData as error:
        raise InvalidData(error.message, f"{path}{error.path}") from error
