"""Several methods on the same rows: what tells them apart, and the table of how they did.

Each is a training job that is a part of the comparison (`core.jobs.parts`). As the seed and the
split
are the same, so are the held-out rows; their scores are the metrics of the jobs, which hold what
was measured besides (`worker.measurement`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from core.database.schema import Json
from core.exceptions import Conflict, NotFound
from core.jobs.jobs import FINAL, Job, Jobs
from core.names import dotted_paths
from models.config import MethodConfig

# In a row of the table, and where a job's metrics have it. Those that no method has are left out.
SCORES: Mapping[str, tuple[str, ...]] = {
    "log_likelihood": ("log_likelihood",),
    "perplexity": ("perplexity",),
    "rmse": ("rmse",),
    "accuracy": ("accuracy",),
    "crps": ("crps",),
    "mase": ("mase",),
    "brier": ("brier",),
    "coverage_0.9": ("coverage", "0.9"),
    "ece": ("ece",),
}
MEASURES = ("predict_ms", "bytes", "num_weights")


def names(methods: Sequence[MethodConfig]) -> list[str]:
    """The kinds; with what differs, of several methods of one kind: `sgld chains=8`."""
    settings = [dotted_paths(asdict(method)) for method in methods]
    return [_name(own, [s for s in settings if s["kind"] == own["kind"]]) for own in settings]


def _name(own: Json, same_kind: Sequence[Json]) -> str:
    differing = [path for path in own if any(other.get(path) != own[path] for other in same_kind)]
    return " ".join([own["kind"], *(f"{path}={own[path]}" for path in differing)])


def table(jobs: Jobs, job_id: str) -> list[Json]:
    """A row per method in the order in which they were asked for; of one that failed, nulls.

    Raises:
        NotFound: there is no such job, or it is no comparison.
        Conflict: it has not ended.
    """
    job = jobs.get(job_id)
    if job.kind != "compare":
        raise NotFound("comparison", job_id)
    if job.status not in FINAL:
        raise Conflict(f"job {job_id} is {job.status}: its methods are compared once it has ended")
    trainings = jobs.parts(job_id)
    known = [name for name in SCORES if any(_score(t, name) is not None for t in trainings)]
    return [_row(training, known) for training in trainings]


def _row(training: Job, known: Sequence[str]) -> Json:
    succeeded = training.version is not None
    measured = training.metrics if succeeded else {}
    return {
        "name": training.spec["name"],
        "method": training.spec["config"]["method"]["kind"],
        "job": training.id,
        "status": training.status.value,
        "version": training.version,
        "error": training.error,
        **{name: _score(training, name) for name in known},
        "ood_auroc": measured.get("ood_auroc"),
        "train_seconds": _seconds(training) if succeeded else None,
        **{name: measured.get(name) for name in MEASURES},
    }


def _score(training: Job, name: str) -> float | None:
    """From the metrics of a training that is done; before, they may hold those of an epoch."""
    value: object = training.metrics if training.version is not None else None
    for key in SCORES[name]:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def _seconds(training: Job) -> float | None:
    """Of the last attempt: one that went on from a checkpoint took less than the whole."""
    if training.started_at is None or training.finished_at is None:
        return None
    return (training.finished_at - training.started_at).total_seconds()
