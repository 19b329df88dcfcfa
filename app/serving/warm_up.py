"""The first predictions of a model that was just loaded, before a caller waits for one."""

from collections.abc import Callable
from time import perf_counter

import numpy as np
import structlog
import torch
from torch import Tensor

from app.serving.batching import Predicts, speed_key
from app.serving.text import is_text, read_texts
from app.serving.throughput import Throughput
from app.serving.values import read_values
from models.features.columns import Columns, InputColumn
from models.forecasting.model import Forecaster
from models.forecasting.rollout import History
from models.prediction.prediction import PredictOptions
from models.trained import TrainedModel

RUNS = 3
LONG_SECONDS = 0.5  # what is made once is then a small part of it
Sizes = tuple[tuple[int, int], ...]
SIZES: Sizes = ((1, 10), (1, 100), (64, 10))  # rows × samples: what more of either costs

log = structlog.stdlib.get_logger(__name__)


def warm_up(artifact: str, model: TrainedModel, throughput: Throughput) -> None:
    """Predict blank rows with every variant, which also tells how long requests take.

    A model that cannot do it is served all the same: its first requests are slower, no more.
    """
    try:
        blank, sizes = _blank(model)
        for prune in model.variants:
            for rows, samples in sizes:
                options = model.settle(PredictOptions(prune=prune, samples=samples))
                seconds = _seconds(model, blank(rows), options)
                throughput.observe(speed_key(artifact, options), rows, options.samples, seconds)
    except Exception:
        log.warning("a model was not warmed up", artifact=artifact, exc_info=True)


def _blank(model: TrainedModel) -> tuple[Callable[[int], Tensor | History], Sizes]:
    """What makes inputs of so many rows, and the sizes to try.

    Of a forecast rows are steps, and of texts those of a single one: nothing takes longer for them.
    """
    if isinstance(model, Forecaster):
        horizon = int(model.forecast.horizon or 1)
        return model.blank_history, tuple((min(rows, horizon), n) for rows, n in SIZES)
    x = model.encode(blank_row(model.inputs))
    if is_text(model.inputs):
        return lambda steps: x[:, :1].expand(1, steps + 1), SIZES
    return lambda rows: torch.cat([x] * rows), SIZES


def _seconds(model: Predicts, x: Tensor | History, options: PredictOptions) -> float:
    """The least of a few runs, the first of which make what is made once; of long ones fewer."""
    seconds = []
    for _ in range(RUNS):
        started = perf_counter()
        model.predict_rows(x, options)
        seconds.append(perf_counter() - started)
        if seconds[-1] > LONG_SECONDS:
            break
    return min(seconds)


def blank_row(inputs: tuple[InputColumn, ...]) -> Columns:
    """One row in which all is missing that may be, and tensors are zero."""
    if is_text(inputs):
        return read_texts([""], inputs[0])
    return {
        column.name: np.zeros((1, *(column.shape or ())), dtype=np.float32)
        if column.type == "tensor"
        else read_values(column, [None], str)
        for column in inputs
    }
