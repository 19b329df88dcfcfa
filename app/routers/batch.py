"""`POST /predict/batch`: a job predicts a whole data set; its result is one Parquet file."""

from typing import Annotated

from anyio import from_thread
from fastapi import APIRouter, Depends, Response

from app.dependencies import ContextDep, Services, ServicesDep
from app.http.bodies import json_body
from app.http.idempotency import CreatingRoute
from app.job_submission import current_request, wake
from app.openapi import json_request, problems
from app.schemas.jobs import JobResponse
from app.schemas.predictions import BatchRequest
from app.serving.predictor import check_data_sets
from core.datasets.dataset import Dataset
from core.datasets.inputs import check_inputs
from core.jobs.specs import PredictSpec, plan_chunk_rows
from core.predictions.row_groups import row_groups
from core.registry.registry import Version
from models.model import TrainedModel

router = APIRouter(tags=["predictions"], route_class=CreatingRoute)

EXAMPLE = {"model": "concrete", "version": "champion", "dataset": "ds_6f0c", "samples": 100}


@router.post(
    "/predict/batch",
    status_code=202,
    responses=problems(400, 404, 415, 422, 503),
    openapi_extra=json_request(BatchRequest, EXAMPLE),
)
def predict_batch(
    request: Annotated[BatchRequest, Depends(json_body(BatchRequest))],
    response: Response,
    services: ServicesDep,
    context: ContextDep,
) -> JobResponse:
    """Queue a job that predicts every row of a data set. `GET /jobs/{id}/result` has its result.

    A forecaster predicts the steps ahead of every series, which begin after its last known target;
    rows after that give the covariates. A series that cannot be forecast has one row, whose `error`
    says why; sums over series (`totals`) need every series, and the job then fails. The version,
    the seed, the sampler and the levels of adaptive intervals are resolved now, for all rows.
    """
    dataset = context.datasets.get(request.dataset)
    version = context.registry.get(request.model, request.version)
    model = _model(services, request, dataset, version)
    groups = row_groups(context.datasets, dataset.id, model)
    count = dataset.rows if groups is None else len(groups)
    spec = _spec(services, request, version, model, count)
    job = context.jobs.create_batch(spec, count, current_request())
    wake(context, job)
    response.headers["Location"] = f"/jobs/{job.id}"
    return JobResponse.model_validate(job)


def _model(
    services: Services, request: BatchRequest, dataset: Dataset, version: Version
) -> TrainedModel:
    """The model. Checks that it can predict this data set."""
    services.predictor.limits.check_samples(request.samples)  # the rows have no limit
    model: TrainedModel = from_thread.run(services.predictor.cache.get, version)
    check_data_sets(model)
    check_inputs(model.inputs, dataset.columns)
    return model


def _spec(
    services: Services, request: BatchRequest, version: Version, model: TrainedModel, count: int
) -> PredictSpec:
    """The job's specification, for `count` rows or series."""
    adapt = services.predictor.adaptation.resolve
    options = from_thread.run(adapt, version, model, model.resolve(request))
    work = options.samples * model.values_per_sample(options) * (model.unit(options) or 1)
    together = options.totals is not None and options.totals.over_series
    resolved = {
        "version": version.version,
        "samples": options.samples,
        "seed": options.seed,
        "sampler": options.sampler,
        "adapted": options.adapted,
        "horizon": request.horizon if model.group_columns is None else options.horizon,
        "chunk_rows": plan_chunk_rows(count, work, request.chunk_rows, together=together),
    }
    return PredictSpec.model_validate(request.model_dump() | resolved)
