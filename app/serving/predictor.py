"""From a question to its answer: find the model, decode, wait for the engine, compute."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from app.bodies import off_loop
from app.metrics import Metrics, PredictMeasure
from app.serving.admission import Admission, Limits
from app.serving.engine import Computed, Engine
from app.serving.model_cache import ModelCache
from app.serving.question import Answer, Question, Timings
from app.serving.resolver import Resolver
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

    async def answer(self, question: Question, measure: PredictMeasure) -> Answer:
        """Answer a question, whatever the wire format; the caller reads and writes that.

        Raises:
            Invalid, InvalidInput: the question is wrong.
            NotFound: there is no such model or version.
            TooLarge, Unavailable: it is too much, ever or now.
        """
        rows, options = question.num_rows, question.options
        self.limits.check(rows, options.samples)
        version = await self.resolver.resolve(question.model, question.version)
        measure.model = version.model
        model = await self.cache.get(version)
        with measure.stage("decode"):
            columns = await off_loop(question.num_bytes, question.decode, model.inputs)
        del question  # its rows take several times the size of the columns
        work = self.limits.check(rows, options.samples, _values(model, options))
        computed = await self._compute(work, lambda: model.predict(columns, options))
        measure.stages |= {"queue": computed.queue_seconds, "compute": computed.compute_seconds}
        timings = Timings(computed.queue_seconds, computed.compute_seconds, measure.seconds)
        return Answer(version, computed.value, timings)

    async def _compute(self, work: int, predict: Callable[[], Prediction]) -> Computed[Prediction]:
        self.admission.enter(work)
        future = self.engine.submit(predict)
        future.add_done_callback(lambda _: self.admission.leave(work))
        computed = await asyncio.wrap_future(future)  # cancelling this cancels the queued future
        self.admission.observe(work, computed.compute_seconds)
        self.metrics.batch_work.observe(work)
        return computed


def _values(model: BayesianModel, options: PredictOptions) -> int:
    """How many numbers of each sample of a row the answer holds; 1 if it holds summaries."""
    return len(model.classes or (1,)) if options.return_draws else 1
