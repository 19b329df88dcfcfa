"""From labelled rows to their scores: as a prediction, but that the truth comes with the rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from app.http.bodies import off_loop
from app.serving.batching import Entry, speed_key
from app.serving.predictor import Predictor
from app.serving.question import Question
from app.serving.scored import Labelled, Scored
from app.serving.truth import check_length, read_truth
from core.access.callers import View
from core.exceptions import Invalid
from core.registry.registry import Version
from models.evaluation.metrics import PerRowScores
from models.features.targets import present
from models.model import Encoded, TrainedModel

# The scores of a row cost many predictions (CRPS compares all pairs of samples): whoever predicts
# meanwhile waits for so many rows at most, and not for all of them.
ROWS_AT_ONCE = 100


@dataclass(frozen=True)
class ScoredRows:
    """The scores of the rows whose truth is known, by this version."""

    version: Version
    scores: PerRowScores


async def score(predictor: Predictor, question: Question, truth: object, view: View) -> ScoredRows:
    """Score the rows of a question, within the same limits and by the same engine as predictions.

    Raises:
        Invalid, InvalidInput: rows or labels are wrong, or of a language model.
        NotFound: there is no such model or version.
        TooLarge, Unavailable: it is too much, ever or now.
    """
    version = await predictor.resolver.resolve(view, question.model, question.version)
    model = await predictor.cache.get(version)
    if not model.takes_labels:
        raise Invalid([("/model", "is a language model: every text is its own label")])
    options = model.resolve(question.options)
    rows, samples = model.num_rows(question.num_rows, options), options.samples
    labels: list[Any] = check_length(truth, rows)
    work = predictor.limits.check(rows, samples, model.values_per_sample(options))
    artifact = f"{version.artifact_key} labelled"  # which takes longer: it learns its own speed
    with predictor.admission.entered(speed_key(artifact, options), rows, samples, work):
        encode = partial(predictor.encode, model, question, options)
        x, _ = await off_loop(question.num_bytes, encode)
        known = await off_loop(question.num_bytes, read_truth, labels, model.classes)
        parts = [
            await _computed(predictor, Entry(artifact, Labelled(model, truths), some, options))
            for some, truths in _parts(model, x, known)
        ]
    return ScoredRows(version, {n: torch.cat([part[n] for part in parts]) for n in parts[0]})


def _parts(
    model: TrainedModel, x: Encoded, known: np.ndarray
) -> Iterator[tuple[Encoded, np.ndarray]]:
    """Some rows at a time, and only where a truth is known; rows that depend on others at once."""
    if not model.has_independent_rows:
        yield x, known
        return
    for start in range(0, len(x), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        if present(known[rows]).any():
            yield x[rows], known[rows]


async def _computed(predictor: Predictor, entry: Entry) -> PerRowScores:
    computed = await predictor.engine.compute(entry)
    assert isinstance(computed.prediction, Scored)
    return computed.prediction.scores
