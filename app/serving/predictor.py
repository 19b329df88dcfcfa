"""From the bytes of a question to those of its answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.bodies import off_loop, parse, refuse_non_finite
from app.metrics import Metrics, PredictMeasure
from app.schemas.predictions import PredictParameters
from app.serving.admission import Admission, Limits
from app.serving.decode import decode, num_rows
from app.serving.encode import Timings, encode
from app.serving.engine import Computed, Engine
from app.serving.model_cache import ModelCache
from app.serving.resolver import Resolver
from app.validation import validate
from models.model import BayesianModel
from models.prediction.prediction import Prediction, PredictOptions


@dataclass(frozen=True)
class Predictor:
    """What all predictions of a process share."""

    limits: Limits
    resolver: Resolver
    cache: ModelCache
    engine: Engine
    admission: Admission
    metrics: Metrics

    async def answer(self, body: bytes, measure: PredictMeasure) -> bytes:
        """Read, find the model, compute, write.

        Raises:
            NotParseable, Invalid, InvalidInput: the question is wrong.
            NotFound: there is no such model or version.
            TooLarge, Unavailable: it is too much, ever or now.
        """
        with measure.stage("decode"):
            asked, inputs = await off_loop(len(body), read_question, body)
        rows = num_rows(inputs)
        self.limits.check(rows, asked.samples)
        version = await self.resolver.resolve(asked.model, asked.version)
        measure.model = version.model
        model = await self.cache.get(version)
        with measure.stage("decode"):
            columns = await off_loop(len(body), decode, inputs, model.inputs)
        del body, inputs  # several times the size of the columns: not kept in the queue
        options = _options(asked)
        work = self.limits.check(rows, options.samples, _values(model, options))
        computed = await self._compute(work, lambda: model.predict(columns, options))
        measure.stages |= {"queue": computed.queue_seconds, "compute": computed.compute_seconds}
        timings = Timings(computed.queue_seconds, computed.compute_seconds, measure.seconds)
        with measure.stage("encode"):
            size = _num_bytes(computed.value)
            answer = await off_loop(size, encode, version, computed.value, timings)
        await off_loop(size, self.metrics.observe_prediction, measure, computed.value)
        return answer

    async def _compute(self, work: int, predict: Callable[[], Prediction]) -> Computed[Prediction]:
        self.admission.enter(work)
        future = self.engine.submit(predict)
        future.add_done_callback(lambda _: self.admission.leave(work))
        computed = await asyncio.wrap_future(future)  # cancelling this cancels the queued future
        self.admission.observe(work, computed.compute_seconds)
        self.metrics.batch_work.observe(work)
        return computed


def read_question(body: bytes) -> tuple[PredictParameters, Any]:
    """Separate the rows, at which no schema looks, from the parameters.

    Raises:
        NotParseable, Invalid: see `app.bodies`.
    """
    document = parse(body)
    inputs = document.pop("inputs", None)
    refuse_non_finite(document)
    return validate(PredictParameters, document), inputs


def _options(asked: PredictParameters) -> PredictOptions:
    return PredictOptions(
        samples=asked.samples,
        seed=asked.seed,
        prune=asked.prune,
        intervals=asked.intervals,
        sampler=asked.sampler,
        return_draws=asked.return_draws,
    )


def _values(model: BayesianModel, options: PredictOptions) -> int:
    """How many numbers of each sample of a row the answer holds; 1 if it holds summaries."""
    return len(model.classes or (1,)) if options.return_draws else 1


def _num_bytes(prediction: Prediction) -> int:
    """About what the answer takes; it only decides which thread writes it."""
    draws = 0 if prediction.draws is None else prediction.draws.size
    return 20 * (8 * prediction.mean.size + draws)
