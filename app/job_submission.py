"""Submits a job: writes its row, then sends the message that wakes a worker."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog
from asgi_correlation_id import correlation_id

from app.schemas.training import RecipeRequest, TrainRequest
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.resolution import notes_on_targets, resolve_targets
from core.exceptions import Invalid, NotFound, Unavailable
from core.jobs.backlog import read_backlog
from core.jobs.jobs import Job, Origin
from core.jobs.specs import AcquireSpec, EvaluateSpec, TrainSpec
from core.telemetry.tracing import current_traceparent
from models.config import ModelConfig
from models.tabular.streaming.limits import is_streamed

BYTES_OF_VALUE = {"number": 16, "datetime": 16, "boolean": 16}  # an array and a copy
BYTES_OF_TEXT = 80  # a short text as an object, and the pointer to it
CUDA = re.compile(r"cuda(:\d{1,3})?")  # which cards a worker has, only the worker knows
log = structlog.stdlib.get_logger(__name__)


def find_dataset(context: Context, request: RecipeRequest) -> Dataset:
    """The data set of a training request: the named one, or a new one of the inline rows.

    Raises:
        Invalid: the request has neither or both, or the named data set does not exist.
    """
    if (request.dataset is None) == (request.data is None):
        raise Invalid([("/dataset", "give either dataset or data")])
    if request.data is not None:
        dataset, _ = context.datasets.add_columns(request.model, request.data.columns)
        return dataset
    return named_dataset(context, str(request.dataset), "/dataset")


def named_dataset(context: Context, dataset_id: str, path: str) -> Dataset:
    """The data set with this id. If there is none, raises `Invalid` with the field's `path`."""
    try:
        return context.datasets.get(dataset_id)
    except NotFound as error:
        raise Invalid([(path, str(error))]) from error


def resolve_training(context: Context, request: TrainRequest) -> TrainSpec:
    """The request with every default filled in.

    Raises:
        Invalid: as `find_dataset`.
        InvalidData: a column or setting cannot work; the error has its JSON pointer.
    """
    dataset = find_dataset(context, request)
    given = given_configs(request, dataset)
    _check_device(context, given[0].training.device)
    with series_in_memory(context, dataset, given[0]):
        first, *others = resolved = resolve_targets(context.datasets, dataset, given)
        check_memory(context, dataset, resolved)
        return TrainSpec(
            model=request.model,
            dataset=dataset.id,
            config=first,
            others=tuple(others),
            alias=request.alias,
            metadata=request.metadata,
            given=request.given(),
            notes=notes_on_targets(context.datasets, dataset, given, resolved),
        )


@contextmanager
def series_in_memory(context: Context, dataset: Dataset, given: ModelConfig) -> Iterator[None]:
    """Reserve the memory of the series that the recipe of a forecast reads; tables read parts.

    Raises:
        TooLarge: it is more than one request may have.
        Unavailable: too much memory is reserved by others.
    """
    num_bytes = series_bytes(dataset, given)
    taker = f"the series of {dataset.rows} rows take"
    context.memory.check(num_bytes, taker, "give fewer rows, or name fewer features")
    with context.memory.reserve("trainings", num_bytes, caller=context.caller.share):
        yield


def series_bytes(dataset: Dataset, given: ModelConfig) -> int:
    """Memory of the columns that the recipe of a forecast reads whole; 0 for tables."""
    forecast = given.forecast
    if given.task != "forecasting" or forecast is None:
        return 0
    read = {given.target, forecast.time_column, forecast.key}
    if forecast.key is not None:  # features may be attributes of series
        read |= {one.name for one in given.features or dataset.columns}
    types = [column.type for column in dataset.columns if column.name in read]
    return dataset.rows * sum(BYTES_OF_VALUE.get(one, BYTES_OF_TEXT) for one in types)


def check_memory(
    context: Context,
    dataset: Dataset,
    configs: Sequence[ModelConfig],
    *,
    compared: bool = False,
) -> None:
    """Raise `InvalidData` for a training that needs too much memory and cannot be streamed."""
    profiles = {profile.name: profile for profile in dataset.columns}
    memory = context.settings.training_memory_bytes
    is_streamed(configs, profiles, dataset.rows, memory, compared=compared)


def _check_device(context: Context, wanted: str) -> None:
    """Raise `Invalid` for a device that no live worker has. Without live workers any may come."""
    known = read_backlog(context.database).live_workers
    has_cuda = any(device.startswith("cuda") for device in known)
    is_there = wanted in ("auto", "cpu") or (CUDA.fullmatch(wanted) and (has_cuda or not known))
    if not is_there:
        there = ["auto", "cpu", *sorted({*known} - {"cpu"})]
        message = f"no worker has {wanted!r}; there are {', '.join(there)}"
        raise Invalid([("/training/device", message)])


def given_configs(request: TrainRequest, dataset: Dataset) -> list[ModelConfig]:
    """The configuration of each target as the request has it."""
    return [one.config(dataset.columns, one.method) for one in request.each()]


def enqueue(context: Context, spec: TrainSpec | EvaluateSpec | AcquireSpec) -> Job:
    """Create a job and wake a worker.

    Raises:
        Invalid: the data set was deleted in the meantime.
    """
    try:
        job = context.jobs.create(spec, current_request())
    except NotFound as error:
        raise Invalid([("/dataset", str(error))]) from error
    wake(context, job)
    return job


def current_request() -> Origin:
    """The ids of the current request, for the worker's logs and traces."""
    return Origin(correlation_id.get(), current_traceparent())


def wake(context: Context, job: Job) -> None:
    """Wake workers for a job or its parts. Without a broker, a worker's sweep finds the job."""
    try:
        for job_id in context.jobs.queued_ids(job.id):
            context.queue.send(job_id)
    except Unavailable as error:
        log.warning("no worker was woken: the job waits", job_id=job.id, reason=str(error))
