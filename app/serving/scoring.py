"""Scores of labelled rows, computed by the engine within the limits of predictions."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from app.serving.batching import Entry, speed_key
from app.serving.labels import check_length, read_labels, read_weights
from app.serving.predictor import Predictor
from app.serving.request import PredictionRequest
from core.access.callers import Caller
from core.exceptions import Invalid
from core.registry.registry import Version
from core.validation import MAX_ERRORS
from models.evaluation.conformal_rank import Reference
from models.evaluation.metrics import PerRowScores
from models.evaluation.weighting import WEIGHT
from models.features.targets import present
from models.model import Encoded, TrainedModel
from models.prediction.options import ResolvedOptions

# Scores take much longer than predictions (CRPS compares all pairs of samples). So the rows are
# scored in parts of this size, with other requests in between.
ROWS_AT_ONCE = 100

# One wrong label, by mistake or on purpose, would otherwise decide a mean for a thousand rows. The
# scale of a row is the held-out root mean squared error of the version, or the row's own standard
# deviation if that is larger. Source: Huber and Ronchetti, Robust Statistics, 2009, section 1.
FARTHEST = 30.0  # scales: an error of a row counts at most as this
IMPOSSIBLE = 1e6  # scales: a label that is farther away is refused

Truth = Callable[[TrainedModel], object]
"""The labels of a request for a model: a list of them, if the request is right."""


@dataclass(frozen=True)
class ScoredRows:
    """The version, its scores of the rows with a known target, and its calibration rows."""

    version: Version
    scores: PerRowScores
    reference: Reference | None
    rows: tuple[int, ...]  # their numbers in the request


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
    truth: Truth,
    caller: Caller,
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
    version = await predictor.versions.find(caller.view, request.model, request.version)
    model = await predictor.cache.get(version)
    if model.no_labels:
        raise Invalid([("/model", model.no_labels)])
    options = model.resolve(request.options)
    rows, samples = model.num_rows(request.num_rows, options), options.samples
    work = predictor.limits.work(rows, samples, model.values_per_sample(options))
    artifact = f"{version.artifact_key} labelled"  # scoring is slower, so it needs its own estimate
    speed, share = speed_key(artifact, options), caller.share
    with predictor.admission.entered(speed, rows, samples, work, caller=share):
        encode = partial(predictor.encode, model, request, options)
        x, _, _ = await predictor.large_work.call(share, request.num_bytes, encode)
        given = await predictor.large_work.call(share, request.num_bytes, partial(truth, model))
        labels: list[Any] = check_length(given, model.size(x))
        read = partial(read_labels, labels, model.classes, model.label)
        known = await predictor.large_work.call(share, request.num_bytes, read)
        each = None if weights is None else read_weights(weights, known)
        if each is not None:
            known[each == 0] = np.nan if model.classes is None else None
        parts = []
        for some, truths in _parts(model, x, known):
            labelled = _LabelledRows(model, truths)
            size = model.size(some)
            entry = Entry(
                artifact, labelled, some, options, unit=None, joint_work=size, caller=share
            )
            parts.append((await predictor.engine.compute(entry)).prediction.scores)
    scores = {n: torch.cat([part[n] for part in parts]) for n in parts[0]}
    if each is not None:
        scores[WEIGHT] = torch.from_numpy(each[present(known)])
    rows_known = tuple(np.flatnonzero(present(known)).tolist())
    return ScoredRows(version, scores, model.variant(options.prune).reference, rows_known)


def bounded(scored: ScoredRows) -> ScoredRows:
    """The same with scores that no label can push beyond all bounds.

    Raises:
        Invalid: a label is farther from its prediction than any true value can be.
    """
    held_out = scored.version.description.get("metrics") or {}
    if wrong := _impossible_rows(scored.scores, held_out)[:MAX_ERRORS]:
        message = (
            f"is more than {IMPOSSIBLE:,.0f} times the usual error away from its prediction: "
            "give the target in the unit of the training data"
        )
        raise Invalid([(f"/truth/{scored.rows[row]}", message) for row in wrong])
    return replace(scored, scores=_winsorise(scored.scores, held_out))


def _winsorise(scores: PerRowScores, held_out: Mapping[str, Any]) -> PerRowScores:
    """The scores with errors of at most `FARTHEST` scales.

    A log likelihood is at most so far below the held-out mean as that of a Gaussian there,
    `FARTHEST`² / 2 nats. Shares, such as coverage, need no bound.

    Args:
        held_out: the version's metrics on held-out rows.
    """
    expected = held_out.get("log_likelihood")
    lowest = None if expected is None else expected - FARTHEST**2 / 2
    bounded = dict(scores)
    for name in ("log_likelihood", "uncalibrated_log_likelihood"):
        if name in scores and lowest is not None:
            bounded[name] = scores[name].clamp_min(lowest)
    if "mae" in scores:
        farthest = FARTHEST * _scale(scores, held_out)
        for name, limit in (("mae", farthest), ("crps", farthest), ("squared_error", farthest**2)):
            bounded[name] = torch.minimum(scores[name], limit)
    return bounded


def _impossible_rows(scores: PerRowScores, held_out: Mapping[str, Any]) -> list[int]:
    """The rows whose label is more than `IMPOSSIBLE` scales from its prediction."""
    if "mae" not in scores:
        return []
    far = scores["mae"] > IMPOSSIBLE * _scale(scores, held_out)
    return torch.nonzero(far).flatten().tolist()


def _scale(scores: PerRowScores, held_out: Mapping[str, Any]) -> Tensor:
    """The scale of each row; infinite if neither is known."""
    own = scores.get("uncertainty", torch.zeros_like(scores["mae"]))
    usual = float(held_out.get("rmse") or 0.0)
    scale = torch.where(own.isfinite(), own, 0.0).clamp_min(usual)
    return torch.where(scale > 0, scale, torch.inf)


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
