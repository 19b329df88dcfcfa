"""The scores to expect of a version on a data set, computed by the engine between predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from app.http.caller_threads import CallerThreads
from app.serving.batching import Entry, speed_key
from app.serving.predictor import Predictor, check_independent_rows
from core.context import Context
from core.datasets.dataset import Dataset
from core.datasets.inputs import check_inputs, columns_for
from core.datasets.labelled import labelled_columns
from core.exceptions import Invalid
from core.predictions.drift import tell_drift
from core.registry.registry import Version
from models.evaluation.detector import Detector
from models.expected_scores.expectation import (
    Expectation,
    Unlike,
    compare_unlike,
    expect,
)
from models.expected_scores.simulation import Simulated
from models.features.columns import Columns
from models.features.targets import present
from models.model import Encoded, TrainedModel
from models.prediction.options import DEFAULT_SAMPLES, PredictOptions, ResolvedOptions
from models.prediction.prediction import ClassName
from models.tabular.unlabelled import expects_scores, simulate

ROWS_AT_ONCE = 100  # with other requests in between, as in `app.serving.scoring`
MOST_ROWS = 10_000
DEFAULT_ROWS = 5_000  # half a second for a Gaussian, some seconds for mixtures with a shape

CALIBRATED = (
    "valid only if labels still follow from the features as in training; if they do not, only "
    "labels can show it"
)
OLDER = (
    "this version did not keep what its held-out rows showed: nothing is corrected by them or "
    "compared with them; train it again"
)


@dataclass(frozen=True)
class ExpectedScores:
    """What is expected of a version on a data set.

    Args:
        rows: number of rows used.
        notes: what the answer cannot say.
    """

    version: Version
    prune: float
    rows: int
    dataset_rows: int
    scores: Mapping[str, Expectation]
    unlike: Unlike
    labelled_rows: int
    notes: Sequence[str]

    @property
    def reasons(self) -> list[str]:
        """What leaves that which training promised."""
        found = [
            f"{name} of {one.lower:.4g} to {one.upper:.4g} is expected on these rows; that of the "
            f"held-out rows was {one.promised:.4g}"
            for name, one in self.scores.items()
            if one.leaves
        ]
        if self.unlike.leaves:
            found.append(
                f"{100 * self.unlike.share:.3g} % of the rows are unlike those of training, not "
                f"{100 * self.unlike.promised:.3g} %: for such rows nothing is promised"
            )
        return found


@dataclass(frozen=True)
class _Part:
    """The engine's result for some rows."""

    samples: int
    simulated: Simulated


@dataclass(frozen=True)
class _SomeRows:
    """Stands in for a model in the engine: simulates labels of rows.

    Args:
        truth: the labels of the rows; NaN or None if unknown. None if all are.
        first: number of the first row.
    """

    model: TrainedModel
    truth: np.ndarray | None
    first: int

    def predict_rows(self, x: Encoded, options: ResolvedOptions) -> _Part:
        """Simulated scores in place of predictions."""
        found = simulate(self.model, x, options, self.truth, self.first)
        return _Part(options.samples, found)


async def expected_scores(
    predictor: Predictor,
    threads: CallerThreads,
    context: Context,
    version: Version,
    dataset_id: str,
    *,
    prune: float,
    level: float,
    rows: int,
    seed: int,
) -> ExpectedScores:
    """The scores to expect on a data set, of at most so many rows, drawn with a seed.

    Args:
        threads: in which the rows are read and encoded.

    Raises:
        Invalid, InvalidInput: the model does not predict rows, or the data set lacks a column.
        NotFound: there is no such data set.
        Unavailable: too many requests wait.
    """
    model = await predictor.cache.get(version)
    check_independent_rows(model)
    if not expects_scores(model):
        raise Invalid([("/model", "scores are expected of tables with one target")])
    options = model.resolve(PredictOptions(prune=prune, samples=DEFAULT_SAMPLES, intervals=()))
    most = min(rows, max(1, predictor.limits.max_work // options.samples))
    share = context.caller.share
    data = await threads.run(share, _read, context, model, dataset_id, most, seed)
    used, artifact = len(data.chosen), f"{version.artifact_key} expected"
    parts, work = [], used * options.samples
    speed = speed_key(artifact, options)
    with predictor.admission.entered(speed, used, options.samples, work, caller=share):
        for first, x, truth in await threads.run(share, _encode, model, data):
            some = _SomeRows(model, truth, first)
            size = model.size(x)
            entry = Entry(artifact, some, x, options, unit=None, joint_work=size, caller=share)
            parts.append((await predictor.engine.compute(entry)).prediction.simulated)
    simulated = Simulated.joined(parts)
    variant = model.variant(prune)
    promise, detector = variant.promise, variant.detector or Detector("")
    found = ExpectedScores(
        version=version,
        prune=prune,
        rows=used,
        dataset_rows=data.dataset.rows,
        scores=expect(simulated, promise, level),
        unlike=compare_unlike(simulated.flagged, used, detector),
        labelled_rows=round(simulated.labelled),
        notes=(CALIBRATED, *([] if promise else [OLDER]), *data.notes),
    )
    await threads.run(share, tell_drift, context.database, version, data.dataset, found.reasons)
    return found


@dataclass(frozen=True)
class _Data:
    """Some rows of a data set.

    Args:
        chosen: numbers of the rows that are used.
        truth: their labels; None if the data set has no column of them.
    """

    dataset: Dataset
    chosen: Int[np.ndarray, "rows"]
    columns: Columns
    truth: np.ndarray | None
    notes: Sequence[str]


def _read(context: Context, model: TrainedModel, dataset_id: str, most: int, seed: int) -> _Data:
    dataset, target = context.datasets.get(dataset_id), model.config.target
    check_inputs(model.inputs, dataset.columns)
    chosen, notes = np.arange(dataset.rows), list[str]()
    if dataset.rows > most:
        drawn = np.random.default_rng(seed).choice(dataset.rows, most, replace=False)
        chosen = np.sort(drawn)
        notes.append(f"the scores are of {most} of the {dataset.rows} rows, drawn at random")
    try:
        columns = labelled_columns(context.datasets, dataset_id, model, chosen)
    except Invalid:  # labels that cannot be read are not needed
        columns = columns_for(context.datasets, dataset_id, model.inputs, chosen)
    truth = columns.get(target)
    if truth is not None and model.classes is not None:
        truth, others = _of_classes(truth, model.classes)
        if others:
            notes.append(f"{others} labels are no class of the model: they are not in `actual`")
    return _Data(dataset, chosen, columns, truth, notes)


def _of_classes(truth: np.ndarray, classes: Sequence[ClassName]) -> tuple[np.ndarray, int]:
    """The labels without those that the model does not know, and the number of these."""
    known = set(classes)
    others = present(truth) & np.array([label not in known for label in truth.tolist()], bool)
    left = truth.copy()
    left[others] = None  # NaN in an array of numbers
    return left, int(others.sum())


def _encode(model: TrainedModel, data: _Data) -> list[tuple[int, Encoded, np.ndarray | None]]:
    """Parts of `ROWS_AT_ONCE` rows: the first one's number, the encoded rows, and their labels."""
    x, truth, parts = model.encode(data.columns), data.truth, []
    for first in range(0, len(data.chosen), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        parts.append((first, x[rows], None if truth is None else truth[rows]))
    return parts
