"""`/models`: models, versions, aliases, model cards, evaluations."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Request, Response

from app.dependencies import ContextDep, PagingDep, ServicesDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.http.large_answers import large_answer
from app.http.negotiation import negotiate
from app.job_submission import enqueue
from app.openapi import json_request, json_response, problems
from app.schemas.card import CardResponse
from app.schemas.common import PageResponse
from app.schemas.jobs import JobResponse
from app.schemas.models import (
    AcquireRequest,
    AliasRequest,
    EvaluateRequest,
    ModelResponse,
    ModelSummary,
    VersionResponse,
)
from app.ui.card.page import render_card
from app.ui.pages import page
from core.context import Context
from core.exceptions import Invalid, NotFound
from core.jobs.specs import AcquireSpec, EvaluateSpec
from core.registry import cards
from core.registry.registry import Version

router = APIRouter(tags=["models"], route_class=CreatingRoute)

JSON, HTML = "application/json", "text/html"


@router.get("/models", response_model=PageResponse[ModelSummary], responses=problems(422, 503))
def list_models(request: Request, context: ContextDep, paging: PagingDep) -> Response:
    """All models, by name."""
    page = context.registry.list(paging.limit, paging.cursor)
    return large_answer(request, PageResponse[ModelSummary].model_validate(page))


@router.get("/models/{name}", response_model=ModelResponse, responses=problems(404, 503))
def get_model(request: Request, context: ContextDep, name: str) -> Response:
    """A model's versions, newest first, and its aliases."""
    return large_answer(request, ModelResponse.of(name, context.registry.versions(name)))


@router.delete("/models/{name}", status_code=204, responses=problems(404, 503))
def delete_model(context: ContextDep, name: str) -> None:
    """Delete a model with all versions and aliases."""
    context.registry.delete_model(name)


@router.get(
    "/models/{name}/versions/{version}",
    response_model=VersionResponse,
    responses=problems(404, 503),
)
def get_version(request: Request, context: ContextDep, name: str, version: str) -> Response:
    """One version, by number or alias."""
    return large_answer(
        request, VersionResponse.model_validate(context.registry.get(name, version))
    )


@router.get(
    "/models/{name}/versions/{version}/card",
    response_class=Response,
    responses={
        200: json_response(CardResponse, "the model card", HTML),
        **problems(404, 406, 503),
    },
)
async def get_card(
    request: Request, services: ServicesDep, context: ContextDep, name: str, version: str
) -> Response:
    """The model card of a version: its training, its scores and its limits.

    JSON, or with `Accept: text/html` a page without resources from other servers.
    """
    wanted = negotiate(request, (JSON, HTML))
    found = await services.plain.run(context.caller.share, context.registry.get, name, version)
    key = found.artifact_key, found.aliases, wanted
    card = await services.cards.get(key, lambda: _render(context, found, wanted))
    return page(card.decode()) if wanted == HTML else Response(card, media_type=JSON)


def _render(context: Context, version: Version, wanted: str) -> bytes:
    card = CardResponse.model_validate(cards.read(context, version))
    document = card.model_dump(mode="json")
    return render_card(document).encode() if wanted == HTML else orjson.dumps(document)


@router.delete(
    "/models/{name}/versions/{version}",
    status_code=204,
    responses=problems(404, 409, 503),
)
def delete_version(context: ContextDep, name: str, version: str) -> None:
    """Delete a version without aliases. Its number is not used again."""
    context.registry.delete_version(name, context.registry.get(name, version).version)


@router.put(
    "/models/{name}/aliases/{alias}",
    responses=problems(400, 404, 415, 422, 503),
    openapi_extra=json_request(AliasRequest, {"version": 3}),
)
def set_alias(
    request: Annotated[AliasRequest, Depends(json_body(AliasRequest))],
    context: ContextDep,
    name: str,
    alias: str,
) -> VersionResponse:
    """Create or move an alias. The response is the version that it now names."""
    context.registry.set_alias(name, alias, request.version)
    return VersionResponse.model_validate(context.registry.get(name, request.version))


@router.delete("/models/{name}/aliases/{alias}", status_code=204, responses=problems(404, 503))
def delete_alias(context: ContextDep, name: str, alias: str) -> None:
    """Delete an alias. Its version stays."""
    context.registry.delete_alias(name, alias)


@router.post(
    "/models/{name}/evaluate",
    status_code=202,
    responses=problems(400, 404, 415, 422, 503),
    openapi_extra=json_request(EvaluateRequest, {"version": "champion", "dataset": "ds_6f0c"}),
)
def evaluate(
    request: Annotated[EvaluateRequest, Depends(json_body(EvaluateRequest))],
    response: Response,
    context: ContextDep,
    name: str,
) -> JobResponse:
    """Queue a job that scores a version on labelled data. Its `metrics` are the result."""
    version = context.registry.get(name, request.version)
    _check_variant(version, request.prune)
    _check_columns(context, version, request.dataset)
    spec = EvaluateSpec(
        model=name,
        dataset=request.dataset,
        version=version.version,
        prune=request.prune,
    )
    job = enqueue(context, spec)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobResponse.model_validate(job)


@router.post(
    "/models/{name}/acquire",
    status_code=202,
    responses=problems(400, 404, 415, 422, 503),
    openapi_extra=json_request(AcquireRequest, {"dataset": "ds_6f0c", "k": 20}),
)
def acquire(
    request: Annotated[AcquireRequest, Depends(json_body(AcquireRequest))],
    response: Response,
    context: ContextDep,
    name: str,
) -> JobResponse:
    """Queue a job that chooses the rows whose labels would teach a version most.

    Rows that have the target are no candidates. The job's `metrics` are the result: `rows` (of the
    data set, counting from 0, the best first), `information` (nats that each label adds about the
    weights), `joint_information` of all, and the number of `candidates`.
    """
    version = context.registry.get(name, request.version)
    _check_takes_labels(version)
    _check_variant(version, request.prune)
    _check_columns(context, version, request.dataset, with_target=False)
    spec = AcquireSpec(
        model=name, version=version.version, **request.model_dump(exclude={"version"})
    )
    job = enqueue(context, spec)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobResponse.model_validate(job)


def _check_takes_labels(version: Version) -> None:
    """Check that the label of a row is one value."""
    task, label = version.description["task"], f"{version.model} version {version.version}"
    if task not in ("regression", "classification"):
        message = f"{label} does {task.replace('_', ' ')}: choose one that predicts labels of rows"
        raise Invalid([("/version", message)])
    if version.description.get("joint"):
        message = f"{label} has several targets: choose a version with one"
        raise Invalid([("/version", message)])


def _check_variant(version: Version, prune: float) -> None:
    stored = [variant["prune"] for variant in version.description["variants"]]
    if prune not in stored:
        known = ", ".join(f"{fraction:g}" for fraction in stored)
        raise Invalid([("/prune", f"no such variant is stored; there are {known}")])


def _check_columns(
    context: Context, version: Version, dataset_id: str, *, with_target: bool = True
) -> None:
    """Check that a data set has the model's features, and its target."""
    try:
        columns = {column.name for column in context.datasets.get(dataset_id).columns}
    except NotFound as error:
        raise Invalid([("/dataset", str(error))]) from error
    needed = [feature["name"] for feature in version.description["features"]]
    needed += [version.description["target"]] if with_target else []
    if missing := [name for name in needed if name not in columns]:
        raise Invalid([("/dataset", f"lacks the columns {', '.join(missing[:20])}")])
