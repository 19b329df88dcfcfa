"""Prepares an offline prediction: its rows, the model, the job's specification, its cost."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial

import pyarrow as pa
from anyio import from_thread, to_thread

from app.dependencies import Services
from app.schemas.predictions import BatchRequest, EstimateResponse
from app.serving.predictor import check_data_sets
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.files.ingest import Given
from core.datasets.inputs import check_inputs
from core.datasets.labelled import levels_known
from core.datasets.understanding.fixes import fixes_like
from core.exceptions import Invalid
from core.jobs.specs import PredictSpec, plan_chunk_rows, split
from core.offline.estimate import estimate, measure
from core.offline.opening import open_destination
from core.offline.tables import check_keep, predict_rows
from core.predictions.row_groups import row_groups
from core.process.devices import service_device
from core.registry.registry import Version
from models.artifact.files import read_model
from models.model import TrainedModel

NOT_OF_THE_JOB = {"source", "dry_run"}


@dataclass(frozen=True)
class OfflinePrediction:
    """A request that was checked. `spec.rows` is the number of rows, or of series."""

    context: Context
    version: Version
    model: TrainedModel
    spec: PredictSpec

    def check_kept_columns(self) -> None:
        """Raise `Invalid` if a column to keep does not exist, or a prediction has its name."""
        if self.spec.keep:
            next(self._first(1))

    def estimate(self) -> EstimateResponse:
        """What the job would take, measured here and now."""
        spec = self.spec
        started = time.perf_counter()
        read_model(self.context.registry.path(self.version), service_device(self.context.settings))
        load_seconds = time.perf_counter() - started
        together = spec.totals is not None and spec.totals.over_series
        cost = measure(self._first, spec.rows, together=together)
        found = estimate(spec.rows, -(-spec.rows // spec.chunk_rows), load_seconds, cost)
        return EstimateResponse(dataset=spec.dataset, **asdict(found))

    def _first(self, count: int) -> Iterator[pa.Table]:
        """The predictions of the first rows, as a worker computes them."""
        (chunk,) = split(self.spec.model_copy(update={"chunk_rows": count}), "estimate", count)
        return predict_rows(self.context, self.model, chunk)


def prepare(services: Services, context: Context, request: BatchRequest) -> OfflinePrediction:
    """Check a request, and read its source.

    Raises:
        NotFound: there is no such model or data set.
        Invalid: the rows lack a column, or source, destination or options are wrong.
        Conflict: the destination has something else.
    """
    if (request.dataset is None) == (request.source is None):
        raise Invalid([("/dataset", "give either dataset or source")])
    services.predictor.limits.check_samples(request.samples)  # the rows have no limit
    version = context.registry.get(request.model, request.version)
    model: TrainedModel = from_thread.run(services.predictor.cache.get, version)
    check_data_sets(model)
    check_keep(model, request.keep)
    if request.destination is not None:
        owner, scratch = context.caller.owner, context.scratch.path
        open_destination(request.destination, context.settings, owner, scratch).check_free()
    dataset = _dataset(services, context, request, model)
    check_inputs(model.inputs, dataset.columns)
    groups = row_groups(context.datasets, dataset.id, model)
    count = dataset.rows if groups is None else len(groups)
    spec = _spec(services, request, version, model, dataset, count)
    found = OfflinePrediction(context, version, model, spec)
    found.check_kept_columns()
    return found


def _dataset(
    services: Services, context: Context, request: BatchRequest, model: TrainedModel
) -> Dataset:
    """The named data set, or a snapshot of the source."""
    if request.source is None:
        return context.datasets.get(str(request.dataset))
    # The reply of an Idempotency-Key is that of the job, not of its data set.
    caller = replace(context.caller, operation=None)
    sources = context.for_caller(caller).sources
    given = Given(fixes=fixes_like(model.columns_read, levels=levels_known(model)))
    read = partial(sources.add, request.model, request.source, given)

    async def read_apart() -> Dataset:
        with services.readers.entered(context.caller.share) as threads:
            return (await to_thread.run_sync(read, limiter=threads))[0]

    return from_thread.run(read_apart)


def _spec(  # noqa: PLR0917
    services: Services,
    request: BatchRequest,
    version: Version,
    model: TrainedModel,
    dataset: Dataset,
    count: int,
) -> PredictSpec:
    """The job's specification, for `count` rows or series."""
    adapt = services.predictor.adaptation.resolve
    options = from_thread.run(adapt, version, model, model.resolve(request))
    work = options.samples * model.values_per_sample(options) * (model.unit(options) or 1)
    together = options.totals is not None and options.totals.over_series
    resolved = {
        "dataset": dataset.id,
        "version": version.version,
        "samples": options.samples,
        "seed": options.seed,
        "sampler": options.sampler,
        "adapted": options.adapted,
        "horizon": request.horizon if model.group_columns is None else options.horizon,
        "chunk_rows": plan_chunk_rows(count, work, request.chunk_rows, together=together),
        "rows": count,
    }
    return PredictSpec.model_validate(request.model_dump(exclude=NOT_OF_THE_JOB) | resolved)
