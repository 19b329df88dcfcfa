"""`POST /compare`: one job with a training job for each of several methods, on the same rows."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.dependencies import ContextDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.job_submission import (
    check_memory,
    current_request,
    find_dataset,
    named_dataset,
    series_in_memory,
    wake,
)
from app.openapi import json_request, problems
from app.schemas.common import Json
from app.schemas.compare import CompareRequest
from app.schemas.jobs import JobResponse
from core.calendars import check_holidays
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.inputs import check_inputs
from core.datasets.resolution import notes_on
from core.exceptions import Invalid
from core.jobs import comparison
from core.jobs.specs import CompareSpec, MethodSpec
from models.config import BBBConfig, MethodConfig, ModelConfig, Pruning
from models.exceptions import InvalidData
from models.features.columns import ColumnProfile, InputColumn
from models.training.recipe import resolve

router = APIRouter(tags=["training"], route_class=CreatingRoute)

EXAMPLE = {
    "model": "concrete",
    "dataset": "ds_6f0c",
    "target": "y",
    "methods": ["bbb", "swag", {"kind": "sgld", "chains": 8}],
    "out_of_distribution": "ds_a41b",
}
OUT_OF_DISTRIBUTION = "/out_of_distribution"


@router.post(
    "/compare",
    status_code=202,
    responses=problems(400, 404, 413, 415, 422, 503),
    openapi_extra=json_request(CompareRequest, EXAMPLE),
)
def compare(
    request: Annotated[CompareRequest, Depends(json_body(CompareRequest))],
    response: Response,
    context: ContextDep,
) -> JobResponse:
    """Train several methods on the same rows. Each becomes a version of the model.

    `GET /jobs/{id}/result` has the scores, as a table or as a page with charts.
    """
    dataset = find_dataset(context, request)
    given = _given(request, dataset.columns)
    with series_in_memory(context, dataset, given[0]):
        configs = _resolve(context, dataset, given)
    check_memory(context, dataset, configs[:1], compared=True)
    _check_out_of_distribution(context, request, dataset, configs[0])
    notes = notes_on(context.datasets, dataset, given[0], configs[0])
    names = comparison.names([config.method for config in configs])
    _refuse_duplicates(names)
    common: Json = {
        "model": request.model,
        "dataset": dataset.id,
        "out_of_distribution": request.out_of_distribution,
        "metadata": request.metadata,
        "notes": notes,
    }
    specs = [
        MethodSpec(**common, config=config, name=name, given=request.given_of(i))
        for i, (config, name) in enumerate(zip(configs, names, strict=True))
    ]
    whole = CompareSpec(
        **common,
        config=configs[0],
        methods=tuple(config.method for config in configs),
        pruning=next((config.pruning for config in configs if config.pruning), ()),
    )
    job = context.jobs.create_comparison(whole, specs, current_request())
    wake(context, job)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobResponse.model_validate(job)


def _given(request: CompareRequest, columns: Sequence[ColumnProfile]) -> list[ModelConfig]:
    """The configuration of every method, as the request has it."""
    methods = request.method_configs(columns)
    return [
        replace(request.config(columns, method), pruning=_pruning(request, method, methods))
        for method in methods
    ]


def _resolve(context: Context, dataset: Dataset, given: Sequence[ModelConfig]) -> list[ModelConfig]:
    """The configuration of every method, with all defaults filled in: each is fitted once.

    Raises:
        Invalid: has the error of each method, or the one error that all methods share.
    """
    load = partial(context.datasets.columns, dataset.id)
    configs, errors = [], []
    for i, config in enumerate(given):
        try:
            check_holidays(config)
            configs.append(resolve(config, dataset.columns, dataset.rows, load, once=True))
        except InvalidData as error:
            errors.append((i, error))
    if errors:
        raise Invalid(_public_errors(errors, len(given)))
    return configs


def _pruning(
    request: CompareRequest, method: MethodConfig, methods: Sequence[MethodConfig]
) -> Pruning | None:
    """The pruned variants of a method: the request's for `bbb`, none for other methods.

    If no method is `bbb`, every method gets them, so that `resolve` refuses the request.
    """
    prunable = any(isinstance(other, BBBConfig) for other in methods)
    return () if prunable and not isinstance(method, BBBConfig) else request.pruning or ()


def _public_errors(
    errors: Sequence[tuple[int, InvalidData]], methods: int
) -> list[tuple[str, str]]:
    """Errors with paths in the request. An error that all methods share appears once."""
    distinct = {(error.path, error.message) for _, error in errors}
    if len(errors) == methods and len(distinct) == 1:
        return list(distinct)
    return [(f"/methods/{i}{_below_method(error.path)}", error.message) for i, error in errors]


def _below_method(path: str) -> str:
    """The part of a path after `/method`; empty if the path is outside of the method."""
    below = path.removeprefix("/method")
    return below if below != path and below[:1] in ("", "/") else ""


def _check_out_of_distribution(
    context: Context, request: CompareRequest, dataset: Dataset, config: ModelConfig
) -> None:
    """Check that the out-of-distribution rows have all features, with the same types."""
    if request.out_of_distribution is None:
        return
    if config.task not in ("regression", "classification"):
        message = f"is for regression and classification, not {config.task}: leave it out"
        raise Invalid([(OUT_OF_DISTRIBUTION, message)])
    others = named_dataset(context, request.out_of_distribution, OUT_OF_DISTRIBUTION)
    features = {feature.name for feature in config.features or ()}
    needed = [
        InputColumn(name=column.name, type=column.type, shape=column.shape)
        for column in dataset.columns
        if column.name in features
    ]
    check_inputs(needed, others.columns, OUT_OF_DISTRIBUTION)


def _refuse_duplicates(names: Sequence[str]) -> None:
    """Refuse a method that occurs twice: training is deterministic, so both would be equal."""
    firsts = {name: names.index(name) for name in names}
    twice = [(i, firsts[name]) for i, name in enumerate(names) if firsts[name] != i]
    if twice:
        raise Invalid([(f"/methods/{i}", f"is the same as /methods/{first}") for i, first in twice])
