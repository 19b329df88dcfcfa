"""The names of the methods of a comparison, and the table of their scores.

Each method is a training job, a part of the comparison (`core.jobs.parts`). Seed and split are the
same, so the held-out rows are the same. The jobs' metrics hold the scores and the measurements of
`worker.measurement`.
"""

from collections.abc import Sequence
from dataclasses import asdict

from core.database.schema import Json
from core.exceptions import Conflict, NotFound
from core.jobs.jobs import FINAL, Job, Jobs
from core.names import dotted_paths
from models.config import MethodConfig
from models.evaluation.scores import COMPARED, MEASURES, Score


def names(methods: Sequence[MethodConfig]) -> list[str]:
    """A name per method: its kind, and for several of one kind the differing settings.

    Example: `sgld chains=8`.
    """
    settings = [dotted_paths(asdict(method)) for method in methods]
    return [_name(own, [s for s in settings if s["kind"] == own["kind"]]) for own in settings]


def _name(own: Json, same_kind: Sequence[Json]) -> str:
    differing = [path for path in own if any(other.get(path) != own[path] for other in same_kind)]
    return " ".join([own["kind"], *(f"{path}={own[path]}" for path in differing)])


def table(jobs: Jobs, job_id: str) -> list[Json]:
    """A row per method, in the order of the request. Scores of a failed method are None.

    Raises:
        NotFound: there is no such job, or it is not a comparison.
        Conflict: the job has not ended.
    """
    job = jobs.get(job_id)
    if job.kind != "compare":
        raise NotFound("comparison", job_id)
    if job.status not in FINAL:
        raise Conflict(f"job {job_id} is {job.status}: its methods are compared once it has ended")
    trainings = jobs.parts(job_id)
    known = [s for s in COMPARED if any(s.read(_metrics(t)) is not None for t in trainings)]
    return [_row(training, known) for training in trainings]


def _row(training: Job, known: Sequence[Score]) -> Json:
    metrics = _metrics(training)
    measured = {score.name: metrics.get(score.name) for score in MEASURES}
    return {
        "name": training.spec["name"],
        "method": training.spec["config"]["method"]["kind"],
        "job": training.id,
        "status": training.status.value,
        "version": training.version,
        "error": training.error,
        **{score.name: score.read(metrics) for score in known},
        **measured | {"train_seconds": _seconds(training) if metrics else None},
    }


def _metrics(training: Job) -> Json:
    """The metrics of a training that succeeded, else none: they may be those of an epoch."""
    return {} if training.version is None else training.metrics


def _seconds(training: Job) -> float | None:
    """The duration of the last attempt, which may have continued from a checkpoint."""
    if training.started_at is None or training.finished_at is None:
        return None
    return (training.finished_at - training.started_at).total_seconds()
