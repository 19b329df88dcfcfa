"""Predicts with a model right after it is loaded, so that its first request is not slow."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import structlog

from app.serving.batching import speed_key
from app.serving.growth import STEP, measure, rows_worth_joining
from app.serving.throughput import Throughput
from models.exceptions import ModelError
from models.model import TrainedModel
from models.prediction.options import MAX_ACTIONS, Costs, PredictOptions

RUNS = 2  # of which the faster counts: the first one fills caches
LONG_SECONDS = 0.5  # the first run of a slower computation is not much slower than the next ones
# Rows × samples: shows the cost of few samples, of many rows of them, as deadlines leave, and of
# requests without samples. How far batches grow is measured with `GROWTH_SAMPLES`.
SIZES = ((1, 10), (64, 10), (1, None))
GROWTH_SAMPLES = 100
# By them it is measured how much a unit of work of answers takes beside a pass of the network.
QUANTILES = tuple(i / 34 for i in range(1, 34))
ANSWER_SAMPLES = 500
SHARES = 0.02, 2.0  # the least and the greatest that are believed
# Fewer samples of a row are no slower, which is all to know of a model that is as quick as that.
QUICK_SECONDS = 0.005

log = structlog.stdlib.get_logger(__name__)


def warm_up(
    artifact: str,
    model: TrainedModel,
    throughput: Throughput,
    clock: Callable[[], float] = perf_counter,
) -> None:
    """Predict blank rows with every variant, and observe the times in `throughput`.

    The pruned variants predict once, which prepares their weights, and get the times of the full
    one: they are no slower. Of a model that was in memory before, the times are known.
    An error is only logged: the first requests of the model are then slower.
    """
    try:
        for prune in model.variants:
            options = PredictOptions(prune=prune, samples=SIZES[0][1])
            _seconds(model, options, rows=1, runs=1, clock=clock)
        if not throughput.knows(_key(artifact, model, PredictOptions())):
            _observe(artifact, model, throughput, clock)
    except Exception:
        log.warning("a model was not warmed up", artifact=artifact, exc_info=True)


def _observe(
    artifact: str, model: TrainedModel, throughput: Throughput, clock: Callable[[], float]
) -> None:
    """Measure the full variant, and observe its times for all."""

    def seconds_of(rows: int, samples: int | None, runs: int = RUNS) -> float:
        seconds = _seconds(model, PredictOptions(samples=samples), rows, runs, clock)
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
    share = _answer_share(model, curve[STEP] <= QUICK_SECONDS, clock)
    if share is not None:
        throughput.keep_answer_share(artifact, share)
    worth = rows_worth_joining(curve)
    for prune in model.variants:
        options = PredictOptions(prune=prune, samples=GROWTH_SAMPLES)
        throughput.keep_growth(_key(artifact, model, options), worth)


def _answer_share(model: TrainedModel, is_quick: bool, clock: Callable[[], float]) -> float | None:
    """The seconds of a unit of work of answers, relative to those of default ones; None for models
    without such answers.

    What a call takes however little it computes is left out: long computations, whose estimates
    matter, are many rows and samples. Quick models draw more samples for the same reason.
    """
    plain = PredictOptions(samples=ANSWER_SAMPLES if is_quick else GROWTH_SAMPLES)
    many = replace(plain, **_many_answers(model))
    try:
        of_many, of_plain = (model.values_per_sample(model.resolve(o)) for o in (many, plain))
    except ModelError:  # texts have neither
        return None
    if of_many <= of_plain:
        return None
    usual, longer = (_seconds(model, o, STEP, RUNS, clock) for o in (plain, many))
    of_call = _seconds(model, replace(plain, samples=1), 1, RUNS, clock)
    of_work = max(usual - of_call, usual / 4)  # both are measured, and may be off
    least, most = SHARES
    return min(max((longer - usual) / of_work / (of_many / of_plain - 1.0), least), most)


def _many_answers(model: TrainedModel) -> dict[str, Any]:
    if model.classes is None:
        return {"quantiles": QUANTILES}
    return {"costs": Costs(matrix=((1.0,) * len(model.classes),) * MAX_ACTIONS)}


def _key(artifact: str, model: TrainedModel, options: PredictOptions) -> Hashable:
    resolved = model.resolve(options)
    return speed_key(artifact, resolved, model.values_per_sample(resolved))


def _seconds(
    model: TrainedModel,
    options: PredictOptions,
    rows: int,
    runs: int,
    clock: Callable[[], float],
) -> float:
    """The shortest of the runs: the first ones fill caches. Stops after a long run."""
    x, resolved, seconds = model.blank(rows), model.resolve(options), []
    for _ in range(runs):
        started = clock()
        model.predict_rows(x, resolved)
        seconds.append(clock() - started)
        if seconds[-1] > LONG_SECONDS:
            break
    return min(seconds)
