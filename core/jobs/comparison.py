"""The names of the methods of a comparison, and the table of their scores.

Each method is a training job, a part of the comparison (`core.jobs.parts`). Seed and split are the
same, so the held-out rows are the same, and methods are compared by the differences of their log
likelihoods row by row (`core.jobs.row_scores`, `models.evaluation.ranking`). The jobs' metrics hold
the scores and the measurements of `worker.measurement`.
"""

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np
import torch

from core.database.schema import Json
from core.exceptions import Conflict, NotFound
from core.jobs.jobs import FINAL, Job, Jobs
from core.jobs.row_scores import RowScoreFiles
from core.names import dotted_paths
from models.config import MethodConfig
from models.evaluation.ranking import Ranking, rank
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


def table(jobs: Jobs, job_id: str, files: RowScoreFiles | None = None) -> list[Json]:
    """A row per method, in the order of the request. Scores of a failed method are None.

    Args:
        files: the scores of the held-out rows. Without them, or for methods that have none, the
            entries of the comparison in pairs are None.

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
    pairs = {} if files is None else _pairs(trainings, files)
    return [_row(training, known) | pairs.get(training.id, NO_PAIRS) for training in trainings]


NO_PAIRS: Json = {
    "compared_rows": None,
    "verdict": None,
    "difference": None,
    "difference_error": None,
    "optimism": None,
}


def _pairs(trainings: Sequence[Job], files: RowScoreFiles) -> dict[str, Json]:
    """The entries of the comparison in pairs, by job; empty if the rows are not the same."""
    read = {t.id: files.read(t) for t in trainings if t.version is not None}
    found = {k: v for k, v in read.items() if v and np.isfinite(v.log_likelihood).all()}
    if len({scores.rows for scores in found.values()}) != 1:
        return {}
    weights = next(iter(found.values())).weights
    ranking = rank(
        [torch.from_numpy(scores.log_likelihood) for scores in found.values()],
        None if weights is None else torch.from_numpy(weights),
    )
    if ranking is None:
        return {}
    return {
        job_id: {
            "compared_rows": len(found[job_id].log_likelihood),
            "verdict": _verdict(ranking, i),
            "difference": ranking.differences[i].difference,
            "difference_error": ranking.differences[i].standard_error,
            "optimism": ranking.optimism if i == ranking.best else None,
        }
        for i, job_id in enumerate(found)
    }


def _verdict(ranking: Ranking, method: int) -> str:
    if method == ranking.best:
        return "best"
    return "worse" if ranking.worse[method] else "no difference"


def _row(training: Job, known: Sequence[Score]) -> Json:
    metrics = _metrics(training)
    measured = {score.name: metrics.get(score.name) for score in MEASURES}
    errors = metrics.get("standard_errors", {})
    return {
        "name": training.spec["name"],
        "method": training.spec["config"]["method"]["kind"],
        "job": training.id,
        "status": training.status.value,
        "version": training.version,
        "error": training.error,
        **{score.name: score.read(metrics) for score in known},
        **measured | {"train_seconds": _seconds(training) if metrics else None},
        "standard_errors": {score.name: score.read(errors) for score in known},
    }


def _metrics(training: Job) -> Json:
    """The metrics of a training that succeeded, else none: they may be those of an epoch."""
    return {} if training.version is None else training.metrics


def _seconds(training: Job) -> float | None:
    """The duration of the last attempt, which may have continued from a checkpoint."""
    if training.started_at is None or training.finished_at is None:
        return None
    return (training.finished_at - training.started_at).total_seconds()
