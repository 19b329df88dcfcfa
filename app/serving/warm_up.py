"""Predicts with a model right after it is loaded, so that its first request is not slow."""

from time import perf_counter

import structlog

from app.serving.batching import speed_key
from app.serving.throughput import Throughput
from models.model import Encoded, TrainedModel
from models.prediction.options import PredictOptions, ResolvedOptions

RUNS = 3
LONG_SECONDS = 0.5  # the first run of a slower computation is not much slower than the next ones
# Rows × samples: shows the cost of more rows and samples, and of requests without samples.
SIZES = ((1, 10), (1, 100), (64, 10), (1, None))

log = structlog.stdlib.get_logger(__name__)


def warm_up(artifact: str, model: TrainedModel, throughput: Throughput) -> None:
    """Predict blank rows with every variant, and observe the times in `throughput`.

    An error is only logged: the first requests of the model are then slower.
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
    """The shortest of up to three runs: the first ones fill caches. Stops after a long run."""
    seconds = []
    for _ in range(RUNS):
        started = perf_counter()
        model.predict_rows(x, options)
        seconds.append(perf_counter() - started)
        if seconds[-1] > LONG_SECONDS:
            break
    return min(seconds)
