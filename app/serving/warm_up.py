"""Predicts with a model right after it is loaded, so that its first request is not slow."""

from collections.abc import Hashable
from functools import partial
from time import perf_counter

import structlog

from app.serving.batching import speed_key
from app.serving.growth import measure, rows_worth_joining
from app.serving.throughput import Throughput
from models.model import TrainedModel
from models.prediction.options import PredictOptions

RUNS = 2  # of which the faster counts: the first one fills caches
LONG_SECONDS = 0.5  # the first run of a slower computation is not much slower than the next ones
# Rows × samples: shows the cost of few samples, of many rows of them, as deadlines leave, and of
# requests without samples. How far batches grow is measured with `GROWTH_SAMPLES`.
SIZES = ((1, 10), (64, 10), (1, None))
GROWTH_SAMPLES = 100
# Fewer samples of a row are no slower, which is all to know of a model that is as quick as that.
QUICK_SECONDS = 0.005

log = structlog.stdlib.get_logger(__name__)


def warm_up(artifact: str, model: TrainedModel, throughput: Throughput) -> None:
    """Predict blank rows with every variant, and observe the times in `throughput`.

    The pruned variants predict once, which prepares their weights, and get the times of the full
    one: they are no slower. Of a model that was in memory before, the times are known.
    An error is only logged: the first requests of the model are then slower.
    """
    try:
        for prune in model.variants:
            _seconds(model, PredictOptions(prune=prune, samples=SIZES[0][1]), rows=1, runs=1)
        if not throughput.knows(_key(artifact, model, PredictOptions())):
            _observe(artifact, model, throughput)
    except Exception:
        log.warning("a model was not warmed up", artifact=artifact, exc_info=True)


def _observe(artifact: str, model: TrainedModel, throughput: Throughput) -> None:
    """Measure the full variant, and observe its times for all."""

    def seconds_of(rows: int, samples: int | None, runs: int = RUNS) -> float:
        seconds = _seconds(model, PredictOptions(samples=samples), rows, runs)
        for prune in model.variants:
            options = PredictOptions(prune=prune, samples=samples)
            size, count = model.size(model.blank(rows)), model.resolve(options).samples
            throughput.observe(_key(artifact, model, options), size, count, seconds)
        return seconds

    curve = measure(partial(seconds_of, samples=GROWTH_SAMPLES))
    is_quick = curve[1] <= QUICK_SECONDS
    for rows, samples in SIZES:
        key = _key(artifact, model, PredictOptions(samples=samples))
        if not is_quick or rows > 1 or not throughput.knows(key):
            seconds_of(rows, samples, 1 if is_quick else RUNS)
    worth = rows_worth_joining(curve)
    for prune in model.variants:
        options = PredictOptions(prune=prune, samples=GROWTH_SAMPLES)
        throughput.keep_growth(_key(artifact, model, options), worth)


def _key(artifact: str, model: TrainedModel, options: PredictOptions) -> Hashable:
    return speed_key(artifact, model.resolve(options))


def _seconds(model: TrainedModel, options: PredictOptions, rows: int, runs: int) -> float:
    """The shortest of the runs: the first ones fill caches. Stops after a long run."""
    x, resolved, seconds = model.blank(rows), model.resolve(options), []
    for _ in range(runs):
        started = perf_counter()
        model.predict_rows(x, resolved)
        seconds.append(perf_counter() - started)
        if seconds[-1] > LONG_SECONDS:
            break
    return min(seconds)
