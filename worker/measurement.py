"""Measures a trained model for a comparison: its size, its speed, its scores row by row, and how
well it detects rows out of distribution.

The model is first read from its files, as for serving.
"""

import hashlib
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.context import Context
from core.datasets.inputs import columns_for
from core.jobs.jobs import MethodSpec
from core.jobs.row_scores import RowScores
from core.process.devices import service_device
from core.telemetry import tracing
from models.artifact.files import read_model
from models.config import Json
from models.evaluation.class_scores import auroc
from models.exceptions import Stopped
from models.features.columns import Columns
from models.model import TrainedModel
from models.prediction.options import PredictOptions
from models.tabular.measurement import predictive_ood_score
from models.tabular.preparation import prepare
from worker.baselines.columns import split_table, thin
from worker.baselines.tables import own_scores

SAMPLES = 100  # the default of a prediction
MOST_ROWS = 5_000  # of each kind: the AUROC's standard error is below 0.006 (Hanley 1982)
MOST_SCORED = 20_000  # more would change the standard error of a difference by less than 1 %
BLOCK_ROWS = 500  # between two calls of `should_stop`
_WARM_UP = 3  # predictions that fill caches
_LEAST, _MOST, _SECONDS = 5, 50, 1.0  # timed predictions, and their total time


def measure(
    context: Context,
    spec: MethodSpec,
    types: Mapping[str, str],
    directory: Path,
    should_stop: Callable[[], bool],
) -> tuple[Json, RowScores | None]:
    """The measurements, with `ood_auroc` if the comparison has an out-of-distribution data set.

    Also the scores of held-out rows; None for forecasts and texts.

    Args:
        types: the stored type of each column that the model was trained on.
        directory: of the model's files.

    Raises:
        Stopped: `should_stop` returned True between two predictions.
    """
    with tracing.span("measure"):
        torch.set_num_threads(context.settings.threads)
        model = read_model(directory, service_device(context.settings))
        columns = context.datasets.columns(spec.dataset, list(types), types=types)
        measured: Json = {
            "num_weights": model.num_weights,
            "bytes": model.variant(0.0).num_bytes,
            "predict_ms": predict_ms(model, columns, should_stop),
        }
        if spec.out_of_distribution is not None and model.has_independent_rows:
            unlike = columns_for(context.datasets, spec.out_of_distribution, model.inputs)
            measured["ood_auroc"] = ood_auroc(model, columns, types, unlike, should_stop)
        return measured, _score_rows(model, columns, should_stop)


def predict_ms(model: TrainedModel, columns: Columns, should_stop: Callable[[], bool]) -> float:
    """Median milliseconds of a prediction with 100 samples.

    It predicts one row, one forecast, or one text of at most 50 tokens.

    Raises:
        Stopped: as `measure`.
    """
    options, seconds = PredictOptions(samples=SAMPLES), list[float]()

    def predict() -> None:
        model.predict_rows(model.example(columns), options)

    while len(seconds) < _WARM_UP + _LEAST or (
        len(seconds) < _WARM_UP + _MOST and sum(seconds[_WARM_UP:]) < _SECONDS
    ):
        if should_stop():
            raise Stopped
        seconds.append(_seconds(predict))
    return 1e3 * statistics.median(seconds[_WARM_UP:])


def ood_auroc(
    model: TrainedModel,
    columns: Columns,
    types: Mapping[str, str],
    unlike: Columns,
    should_stop: Callable[[], bool],
) -> float:
    """AUROC of the full posterior's score, as a detector of `unlike` rows among held-out rows.

    Args:
        columns, types: the training data. Its split is computed again.
        unlike: columns of the out-of-distribution rows.

    Raises:
        Stopped: as `measure`.
    """
    scored = prepare(columns, types, model.config).scores.to(model.device)
    held_out = scored[torch.from_numpy(_spread(len(scored)))]
    some = {name: values[_spread(len(values))] for name, values in unlike.items()}
    sides = (
        held_out.inputs,
        model.read(some, None, model.resolve(PredictOptions())),
    )
    alike, different = (_ood_scores(model, x, should_stop) for x in sides)
    weights = None if held_out.weights is None else held_out.weights.cpu()
    return auroc(alike, different, weights)


def _ood_scores(
    model: TrainedModel,
    x: Float[Tensor, "rows inputs"],
    should_stop: Callable[[], bool],
) -> Float[Tensor, "rows"]:
    """The scores of rows, computed in blocks so that a worker can stop within seconds."""
    parts = []
    for block in x.split(BLOCK_ROWS):
        if should_stop():
            raise Stopped
        parts.append(torch.from_numpy(predictive_ood_score(model, block, SAMPLES)))
    return torch.cat(parts)


def _spread(rows: int) -> np.ndarray:
    """At most `MOST_ROWS` row numbers, evenly spread, because a data set may be sorted."""
    return np.linspace(0, rows - 1, min(rows, MOST_ROWS)).astype(np.int64)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _score_rows(
    model: TrainedModel, columns: Columns, should_stop: Callable[[], bool]
) -> RowScores | None:
    """The log likelihood of at most `MOST_SCORED` held-out rows; None for forecasts and texts.

    Args:
        columns: the training data. Its split is computed again.

    Raises:
        Stopped: `should_stop` returned True between two blocks of rows.
    """
    if not model.has_independent_rows:
        return None
    held_out = split_table(columns, model.config).held_out
    some = thin(held_out, MOST_SCORED)
    found = own_scores(model, "log_likelihood", columns, some, should_stop)
    weight = model.config.weight
    return RowScores(
        hashlib.sha256(some.astype("<i8").tobytes()).hexdigest(),
        found.double().numpy(),
        None if weight is None else columns[weight][some].astype(np.float64),
    )
