"""What a comparison asks of a trained model beside its scores: size, speed, a sense for strangers.

All are measured on the model as it is served, read back from its files.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.context import Context
from core.jobs.jobs import MethodSpec
from core.process.devices import service_device
from core.telemetry import tracing
from models.artifact.files import read_model
from models.config import Json
from models.evaluation.metrics import auroc
from models.exceptions import Stopped
from models.features.columns import Columns
from models.model import TrainedModel
from models.prediction.options import PredictOptions
from models.tabular.preparation import prepare

SAMPLES = 100  # as in a prediction that says nothing else
MOST_ROWS = 5_000  # on either side: the AUROC's standard error is below 0.006 then (Hanley 1982)
BLOCK_ROWS = 500  # between two looks at whether to stop
_WARM_UP = 3  # predictions that make what is made once
_LEAST, _MOST, _SECONDS = 5, 50, 1.0  # predictions that are timed, and what they may take


def measure(
    context: Context,
    spec: MethodSpec,
    types: Mapping[str, str],
    directory: Path,
    should_stop: Callable[[], bool],
) -> Json:
    """Metrics of the training job, with `ood_auroc` where there are rows to tell apart.

    Raises:
        Stopped: if `should_stop` said so between two predictions.
    """
    with tracing.span("measure"):
        torch.set_num_threads(context.settings.threads)
        model = read_model(directory, service_device(context.settings))
        columns = context.datasets.columns(spec.dataset, list(types))
        measured: Json = {
            "num_weights": model.num_weights,
            "bytes": model.variant(0.0).num_bytes,
            "predict_ms": predict_ms(model, columns, should_stop),
        }
        if spec.out_of_distribution is not None and model.has_independent_rows:
            names = [column.name for column in model.inputs]
            strange = context.datasets.columns(spec.out_of_distribution, names)
            measured["ood_auroc"] = ood_auroc(model, columns, types, strange, should_stop)
        return measured


def predict_ms(model: TrainedModel, columns: Columns, should_stop: Callable[[], bool]) -> float:
    """Milliseconds that one row takes with 100 samples, a forecast, or a text of 50 tokens at most.

    The median of several predictions.

    Raises:
        Stopped: as `measure` does.
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
    strange: Columns,
    should_stop: Callable[[], bool],
) -> float:
    """How well the full posterior's score tells strange rows from held-out ones.

    Args:
        columns, types: those that the model was trained on; the split is made again.

    Raises:
        Stopped: as `measure` does.
    """
    held_out = prepare(columns, types, model.config).scores.inputs.to(model.device)
    some = {name: values[_spread(len(values))] for name, values in strange.items()}
    sides = (
        held_out[_spread(len(held_out))],
        model.read(some, None, model.resolve(PredictOptions())),
    )
    usual, unusual = (_ood_scores(model, x, should_stop) for x in sides)
    return auroc(usual, unusual)


def _ood_scores(
    model: TrainedModel,
    x: Float[Tensor, "rows inputs"],
    should_stop: Callable[[], bool],
) -> Float[Tensor, "rows"]:
    """In blocks, which changes no answer: a worker that is to stop must do so in seconds."""
    parts = []
    for block in x.split(BLOCK_ROWS):
        if should_stop():
            raise Stopped
        parts.append(torch.from_numpy(model.ood_score(block, SAMPLES)))
    return torch.cat(parts)


def _spread(rows: int) -> np.ndarray:
    """Places of at most `MOST_ROWS`, evenly spread: a data set may be in some order."""
    return np.linspace(0, rows - 1, min(rows, MOST_ROWS)).astype(np.int64)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
