"""`/datasets`: upload, list, profiles, first rows, deletion."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request, Response

from app.dependencies import ContextDep, PagingDep, Services, ServicesDep
from app.http.bodies import is_json, json_body
from app.http.idempotency import CreatingRoute
from app.http.large_answers import joined_answer, large_answer
from app.http.uploads import received
from app.openapi import file_or_json_request, json_request, problems
from app.schemas.common import Limit, PageResponse
from app.schemas.datasets import (
    ColumnsRequest,
    DatasetName,
    DatasetResponse,
    RowsResponse,
    SourceRequest,
)
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.files.ingest import Given
from core.datasets.files.options import DatasetOptions
from core.datasets.findings.target_checks import check_target
from core.datasets.formats import MEDIA_TYPES, declared_format
from core.datasets.labelled import levels_known
from core.datasets.understanding.fixes import ColumnFix, fixes_like
from core.exceptions import Invalid, NotFound, UnsupportedFormat
from models.config import ColumnName
from models.model import TrainedModel

router = APIRouter(tags=["data sets"], route_class=CreatingRoute)

TARGET = "a column to predict: `findings` then also has those that concern a training on it"
NAME = "of the new data set; required for an upload"
LIKE = (
    "the id of a data set or the name of a model: columns are read as those, whatever their cells "
    "look like"
)
DATASET_ID = "ds_"
SOURCE_EXAMPLE = {"name": "sales", "source": {"uri": "s3://lake/sales/*.parquet", "secret": "lake"}}
EXAMPLE = {
    "columns": [
        {"name": "price", "type": "number", "missing": ["-"]},
        {"name": "city", "levels": {"Muenich": "Munich"}},
    ],
    "options": {"decimal": ",", "unique_rows": True},
}


@router.post(
    "/datasets",
    status_code=201,
    responses={
        200: {
            "model": DatasetResponse,
            "description": "the data set that already has these bytes",
        },
        **problems(400, 413, 415, 422, 503),
    },
    openapi_extra=file_or_json_request(list(MEDIA_TYPES), SourceRequest, SOURCE_EXAMPLE),
)
async def upload(  # noqa: PLR0917 - FastAPI's dependencies
    request: Request,
    response: Response,
    services: ServicesDep,
    context: ContextDep,
    options: Annotated[DatasetOptions, Depends()],
    name: Annotated[DatasetName | None, Query(description=NAME)] = None,
    like: Annotated[str | None, Query(max_length=128, description=LIKE)] = None,
) -> DatasetResponse:
    """Upload a file, optionally with `Content-Encoding: gzip`. The same bytes are stored once.

    How the file is written is found out. `reading` in the response says what was found, and each
    parameter overrides it. `findings` says what to look at before a training.

    With JSON and without parameters: read files, a table or a query where they lie, as the
    operator's setting `CREDENCE_SOURCES` allows. The response has the snapshot that was read.
    """
    media_type = request.headers.get("content-type")
    if name is None and is_json(request) and not request.query_params:
        return await _read_source(request, response, services, context)
    if name is None:
        raise Invalid([("name", "required")])
    if media_type is None:
        raise UnsupportedFormat(f"send a Content-Type, one of {', '.join(MEDIA_TYPES)}")
    declared_format(media_type)  # before a gigabyte is received
    most, scratch = context.settings.max_body_bytes, context.scratch.path
    fixes = () if like is None else await _fixes_like(like, options.decimal, context, services)
    with services.writers.entered(context.caller.share) as threads:
        async with received(request, scratch, most, threads) as body:
            dataset, created = await to_thread.run_sync(
                context.datasets.add,
                name,
                media_type,
                body.path,
                body.sha256,
                Given(options, fixes),
                limiter=threads,
            )
    return _made(response, dataset, created=created)


async def _read_source(
    request: Request, response: Response, services: Services, context: Context
) -> DatasetResponse:
    body = await json_body(SourceRequest)(request)
    add = partial(context.sources.add, body.name, body.source, Given(body.options))
    dataset, created = await services.readers.run(context.caller.share, add)
    return _made(response, dataset, created=created)


async def _fixes_like(
    like: str, decimal: str | None, context: Context, services: Services
) -> tuple[ColumnFix, ...]:
    """What reads columns as those of a data set, or of a model's training data.

    Raises:
        Invalid: there is neither.
    """
    run, share = services.plain.run, context.caller.share
    try:
        if like.startswith(DATASET_ID):
            dataset = await run(share, context.datasets.get, like)
            levels = await run(share, context.datasets.levels, dataset)
            return fixes_like(dataset.readings, decimal, levels)
        version = await run(share, context.registry.get, like)
        model: TrainedModel = await services.predictor.cache.get(version)
        return fixes_like(model.columns_read, decimal, levels_known(model))
    except NotFound as error:
        raise Invalid(
            [("like", f"{error}: give the id of a data set or the name of a model")]
        ) from error


@router.post(
    "/datasets/{dataset_id}/columns",
    status_code=201,
    responses={
        200: {"model": DatasetResponse, "description": "the data set that has these changes"},
        **problems(400, 404, 409, 413, 415, 422, 503),
    },
    openapi_extra=json_request(ColumnsRequest, EXAMPLE),
)
async def change_columns(
    response: Response,
    services: ServicesDep,
    context: ContextDep,
    dataset_id: str,
    body: Annotated[ColumnsRequest, Depends(json_body(ColumnsRequest))],
) -> DatasetResponse:
    """Read the file or some columns otherwise: a new data set of the same bytes.

    The `fix` of a finding is such a body. Earlier changes are kept unless the body says otherwise.
    """
    change = partial(
        context.datasets.change_columns, dataset_id, body.columns, body.name, body.options
    )
    dataset, created = await services.writers.run(context.caller.share, change)
    return _made(response, dataset, created=created)


@router.post(
    "/datasets/{dataset_id}/refresh",
    status_code=201,
    responses={
        200: {"model": DatasetResponse, "description": "the source has the same bytes as before"},
        **problems(400, 404, 409, 413, 422, 503),
    },
)
async def refresh(
    response: Response, services: ServicesDep, context: ContextDep, dataset_id: str
) -> DatasetResponse:
    """Read the source of a data set again: the next data set of the same name.

    Files, columns and options are read as before. If the bytes are the same, the response is the
    data set that has them.
    """
    dataset, created = await services.readers.run(
        context.caller.share, context.sources.refresh, dataset_id
    )
    return _made(response, dataset, created=created)


def _made(response: Response, dataset: Dataset, *, created: bool) -> DatasetResponse:
    response.status_code = 201 if created else 200
    response.headers["Location"] = f"/datasets/{dataset.id}"
    return DatasetResponse.model_validate(dataset)


@router.get("/datasets", response_model=PageResponse[DatasetResponse], responses=problems(422, 503))
def list_datasets(request: Request, context: ContextDep, paging: PagingDep) -> Response:
    """All data sets, newest first."""
    page = context.datasets.list(paging.limit, paging.cursor)
    return large_answer(request, PageResponse[DatasetResponse].model_validate(page))


@router.get(
    "/datasets/{dataset_id}", response_model=DatasetResponse, responses=problems(404, 422, 503)
)
def get_dataset(
    request: Request,
    context: ContextDep,
    dataset_id: str,
    target: Annotated[ColumnName | None, Query(description=TARGET)] = None,
) -> Response:
    """A data set: its columns, their types and statistics, and findings on them."""
    dataset = context.datasets.get(dataset_id)
    if target is not None:
        load = partial(context.datasets.columns, dataset_id)
        found = check_target(dataset, target, load)
        dataset = replace(dataset, findings=(*dataset.findings, *found))
    return large_answer(request, DatasetResponse.model_validate(dataset))


@router.get(
    "/datasets/{dataset_id}/rows",
    response_model=RowsResponse,
    responses=problems(404, 413, 422, 503),
)
def get_rows(
    request: Request,
    context: ContextDep,
    dataset_id: str,
    limit: Annotated[Limit, Query()] = 20,
    cursor: Annotated[str | None, Query(max_length=512)] = None,
) -> Response:
    """The first rows of a data set, or those after them."""
    rows = context.datasets.shown_rows(dataset_id, limit, cursor)
    return joined_answer(request, rows.data, rows.next_cursor)


@router.delete("/datasets/{dataset_id}", status_code=204, responses=problems(404, 409, 503))
def delete_dataset(context: ContextDep, dataset_id: str) -> None:
    """Delete a data set that no queued or running job uses."""
    context.datasets.delete(dataset_id)
