"""Submits a job: writes its row, then sends the message that wakes a worker."""

from functools import partial

import structlog
from asgi_correlation_id import correlation_id

from app.joint_training import resolve_targets
from app.schemas.training import RecipeRequest, TrainRequest
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.findings.target_checks import check_target
from core.datasets.findings.training_notes import notes_on_columns
from core.exceptions import Invalid, NotFound, Unavailable
from core.jobs.jobs import Job, Origin
from core.jobs.specs import AcquireSpec, EvaluateSpec, TrainSpec
from core.telemetry.tracing import current_traceparent
from models.config import ModelConfig
from models.training.task_choice import explain_task

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
    each = resolve_targets(context, request, dataset)
    notes = [note for given, config in each for note in notes_on(context, dataset, given, config)]
    first, *others = (config for _, config in each)
    return TrainSpec(
        model=request.model,
        dataset=dataset.id,
        config=first,
        others=tuple(others),
        alias=request.alias,
        metadata=request.metadata,
        given=request.given(),
        notes=tuple(dict.fromkeys(notes)),
    )


def notes_on(
    context: Context, dataset: Dataset, config: ModelConfig, resolved: ModelConfig
) -> tuple[str, ...]:
    """What is decided about target and features of a training, for its job and version.

    Args:
        config: as the request has it.
        resolved: the same with every default filled in.
    """
    load = partial(context.datasets.columns, dataset.id)
    profiles = {profile.name: profile for profile in dataset.columns}
    found = check_target(dataset, config.target, load)
    return (
        *explain_task(config, profiles, dataset.rows, load),
        *notes_on_columns(dataset, resolved, found, chosen=config.features is not None),
    )


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
