"""The first predictions of a model that was just loaded, before a caller waits for one."""

from time import perf_counter

import structlog

from app.serving.batching import speed_key
from app.serving.throughput import Throughput
from models.model import Encoded, TrainedModel
from models.prediction.options import PredictOptions, ResolvedOptions

RUNS = 3
LONG_SECONDS = 0.5  # what is made once is then a small part of it
SIZES = ((1, 10), (1, 100), (64, 10))  # rows × samples: what more of either costs

log = structlog.stdlib.get_logger(__name__)


def warm_up(artifact: str, model: TrainedModel, throughput: Throughput) -> None:
    """Predict blank rows with every variant, which also shows how long requests take.

    A model that cannot do it is served all the same: its first requests are slower, no more.
    """
    try:
        for prune in model.variants:
            for size, samples in SIZES:
                options = model.resolve(PredictOptions(prune=prune, samples=samples))
                x = model.blank(size)
                seconds = _seconds(model, x, options)
                key = speed_key(artifact, options)
                throughput.observe(key, model.size(x), options.samples, seconds)
    except Exception:
        log.warning("a model was not warmed up", artifact=artifact, exc_info=True)


def _seconds(model: TrainedModel, x: Encoded, options: ResolvedOptions) -> float:
    """The least of a few runs, the first of which make what is made once; of long ones fewer."""
    seconds = []
    for _ in range(RUNS):
        started = perf_counter()
        model.predict_rows(x, options)
        seconds.append(perf_counter() - started)
        if seconds[-1] > LONG_SECONDS:
            break
    return min(seconds)
