"""Scores of labelled rows, computed by the engine within the limits of predictions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from app.http.bodies import off_loop
from app.serving.batching import Entry, speed_key
from app.serving.labels import check_length, read_labels, read_weights
from app.serving.predictor import Predictor
from app.serving.request import PredictionRequest
from core.access.callers import View
from core.exceptions import Invalid
from core.registry.registry import Version
from models.evaluation.adaptive import Reference
from models.evaluation.metrics import PerRowScores
from models.evaluation.weighting import WEIGHT
from models.features.targets import present
from models.model import Encoded, TrainedModel
from models.prediction.options import ResolvedOptions

# Scores take much longer than predictions (CRPS compares all pairs of samples). So the rows are
# scored in parts of this size, with other requests in between.
ROWS_AT_ONCE = 100


@dataclass(frozen=True)
class ScoredRows:
    """The version, its scores of the rows with a known target, and its calibration rows."""

    version: Version
    scores: PerRowScores
    reference: Reference | None


@dataclass(frozen=True)
class _Scores:
    """The engine's result for labelled rows."""

    samples: int
    scores: PerRowScores


@dataclass(frozen=True)
class _LabelledRows:
    """Stands in for a model in the engine: scores rows with their labels.

    Args:
        truth: the labels of the rows; NaN or None if unknown.
    """

    model: TrainedModel
    truth: np.ndarray

    def predict_rows(self, x: Encoded, options: ResolvedOptions) -> _Scores:
        """Scores in place of predictions."""
        return _Scores(options.samples, self.model.row_scores(x, self.truth, options))


async def score(
    predictor: Predictor,
    request: PredictionRequest,
    truth: object,
    view: View,
    weights: object = None,
) -> ScoredRows:
    """The scores of the rows of a request, with their weights if there are any.

    Rows of weight 0 are left out.

    Raises:
        Invalid, InvalidInput: rows or labels are wrong, or the model takes no labels.
        NotFound: there is no such model or version.
        TooLarge: the request exceeds a limit.
        Unavailable: too many requests wait.
    """
    version = await predictor.versions.find(view, request.model, request.version)
    model = await predictor.cache.get(version)
    if not model.takes_labels:
        raise Invalid([("/model", model.no_labels)])
    options = model.resolve(request.options)
    rows, samples = model.num_rows(request.num_rows, options), options.samples
    work = predictor.limits.work(rows, samples, model.values_per_sample(options))
    artifact = f"{version.artifact_key} labelled"  # scoring is slower, so it needs its own estimate
    with predictor.admission.entered(speed_key(artifact, options), rows, samples, work):
        encode = partial(predictor.encode, model, request, options)
        x, _, _ = await off_loop(request.num_bytes, encode)
        labels: list[Any] = check_length(truth, model.size(x))
        known = await off_loop(request.num_bytes, read_labels, labels, model.classes, model.label)
        each = None if weights is None else read_weights(weights, known)
        if each is not None:
            known[each == 0] = np.nan if model.classes is None else None
        parts = []
        for some, truths in _parts(model, x, known):
            labelled = _LabelledRows(model, truths)
            entry = Entry(artifact, labelled, some, options, unit=None, joint_work=model.size(some))
            parts.append((await predictor.engine.compute(entry)).prediction.scores)
    scores = {n: torch.cat([part[n] for part in parts]) for n in parts[0]}
    if each is not None:
        scores[WEIGHT] = torch.from_numpy(each[present(known)])
    return ScoredRows(version, scores, model.reference(options.prune))


def _parts(
    model: TrainedModel, x: Encoded, known: np.ndarray
) -> Iterator[tuple[Encoded, np.ndarray]]:
    """Parts of `ROWS_AT_ONCE` rows that have known labels; all at once if rows are dependent."""
    if not model.has_independent_rows:
        yield x, known
        return
    for start in range(0, len(x), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        if present(known[rows]).any():
            yield x[rows], known[rows]
