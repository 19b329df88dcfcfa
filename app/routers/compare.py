"""`POST /compare`: several methods on the same rows, each a training job, one job above them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Response

from app.dependencies import ContextDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.openapi import json_request, problems
from app.schemas.common import Json
from app.schemas.compare import CompareRequest
from app.schemas.jobs import JobResponse
from app.submission import find_dataset, named_dataset, present_request, wake
from core.context import Context
from core.datasets.datasets import Dataset
from core.datasets.inputs import check_inputs
from core.exceptions import Invalid
from core.jobs import comparison
from core.jobs.specs import CompareSpec, MethodSpec
from models.config import BBBConfig, MethodConfig, ModelConfig, Pruning
from models.exceptions import InvalidData
from models.features.columns import InputColumn
from models.training.recipe import resolve

router = APIRouter(tags=["training"], route_class=CreatingRoute)

EXAMPLE = {
    "model": "concrete",
    "dataset": "ds_6f0c",
    "target": "y",
    "methods": ["bbb", "swag", {"kind": "sgld", "chains": 8}],
    "out_of_distribution": "ds_a41b",
}
STRANGE = "/out_of_distribution"


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
    """Train several methods on the same rows; each becomes a version of the model.

    `GET /jobs/{id}/result` has the table of their scores, or a page with charts of them.
    """
    dataset = find_dataset(context, request)
    configs = _resolve(context, request, dataset)
    _check_strange(context, request, dataset, configs[0])
    names = comparison.names([config.method for config in configs])
    _refuse_twice(names)
    common: Json = {
        "model": request.model,
        "dataset": dataset.id,
        "out_of_distribution": request.out_of_distribution,
        "metadata": request.metadata,
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
    job = context.jobs.create_comparison(whole, specs, present_request())
    wake(context, job)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobResponse.model_validate(job)


def _resolve(context: Context, request: CompareRequest, dataset: Dataset) -> list[ModelConfig]:
    """Every method's configuration with all that was left open filled in.

    Raises:
        Invalid: naming each method that cannot work, or what is wrong with all of them alike.
    """
    load = partial(context.datasets.columns, dataset.id)
    methods = request.method_configs(dataset.columns)
    configs, errors = [], []
    for i, method in enumerate(methods):
        wanted = request.config(dataset.columns, method)
        wanted = replace(wanted, pruning=_pruning(request, method, methods))
        try:
            configs.append(resolve(wanted, dataset.columns, dataset.rows, load))
        except InvalidData as error:
            errors.append((i, error))
    if errors:
        raise Invalid(_told(errors, len(methods)))
    return configs


def _pruning(
    request: CompareRequest, method: MethodConfig, methods: Sequence[MethodConfig]
) -> Pruning | None:
    """None unless asked for, as the others have none and are timed; then of `bbb` alone.

    Where there is no `bbb`, `resolve` is to refuse it.
    """
    prunable = any(isinstance(other, BBBConfig) for other in methods)
    return () if prunable and not isinstance(method, BBBConfig) else request.pruning or ()


def _told(errors: Sequence[tuple[int, InvalidData]], methods: int) -> list[tuple[str, str]]:
    """`/method/prior` is `/methods/2/prior`; what all say alike is said once, of what it is."""
    said = {(error.path, error.message) for _, error in errors}
    if len(errors) == methods and len(said) == 1:
        return list(said)
    return [(f"/methods/{i}{_below_method(error.path)}", error.message) for i, error in errors]


def _below_method(path: str) -> str:
    """What follows `/method`; nothing for a path to something that the methods share."""
    below = path.removeprefix("/method")
    return below if below != path and below[:1] in ("", "/") else ""


def _check_strange(
    context: Context, request: CompareRequest, dataset: Dataset, config: ModelConfig
) -> None:
    """The strange rows must have all features, of the types that they have in the others.

    They are told from held-out rows, which no weight is fitted to.
    """
    if request.out_of_distribution is None:
        return
    if config.task not in ("regression", "classification"):
        message = f"tells rows of a table apart, not what a {config.task} reads: leave it out"
        raise Invalid([(STRANGE, message)])
    strange = named_dataset(context, request.out_of_distribution, STRANGE)
    features = {feature.name for feature in config.features or ()}
    needed = [
        InputColumn(name=column.name, type=column.type, shape=column.shape)
        for column in dataset.columns
        if column.name in features
    ]
    check_inputs(needed, strange.columns, STRANGE)


def _refuse_twice(names: Sequence[str]) -> None:
    """The same method again would be the same model again: training repeats bit for bit."""
    firsts = {name: names.index(name) for name in names}
    twice = [(i, firsts[name]) for i, name in enumerate(names) if firsts[name] != i]
    if twice:
        raise Invalid([(f"/methods/{i}", f"is the same as /methods/{first}") for i, first in twice])
