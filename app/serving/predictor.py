"""From a question to its answer: find the model, decode, wait for the engine, compute."""

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from app.http.bodies import off_loop
from app.metrics.metrics import PredictMeasure
from app.serving.admission import Admission, Limits
from app.serving.batching import Computed, Entry, speed_key
from app.serving.engine import Engine
from app.serving.model_cache import ModelCache
from app.serving.question import Answer, Question, Timings
from app.serving.resolver import Resolver
from app.serving.scored import Scored
from app.serving.storing import Storing, with_samples
from core.access.callers import Caller
from core.exceptions import Invalid, Unavailable
from core.predictions.stored_predictions import PackedRows
from models.model import Encoded, TrainedModel
from models.prediction.prediction import PredictOptions


@dataclass(frozen=True)
class Predictor:
    """What all predictions of a process share."""

    limits: Limits
    resolver: Resolver
    cache: ModelCache
    engine: Engine
    admission: Admission
    storing: Storing

    async def answer(self, question: Question, measure: PredictMeasure, caller: Caller) -> Answer:
        """Answer a question, whatever the wire format; who calls this reads and writes that.

        Raises:
            Invalid, InvalidInput: the question is wrong.
            NotFound: there is no such model or version.
            TooLarge, Unavailable: it is too much, ever or now, or cannot be answered in time, or
                not be stored as it wishes.
        """
        seconds = question.deadline_seconds
        self.limits.check(0, question.options.samples)  # what a row is depends on the model
        deadline = math.inf if seconds is None else measure.started + seconds
        with self._in_time(seconds):
            async with asyncio.timeout(None if seconds is None else deadline - perf_counter()) as t:
                known = await self.storing.made_before(caller) if question.store else None
                if known is not None:  # what a name meant then is what it means to this request
                    question = replace(question, version=known.version, store=False)
                version = await self.resolver.resolve(caller.view, question.model, question.version)
                measure.model = version.model
                model = await self.cache.get(version)
                options = model.resolve(question.options)
                rows = model.num_rows(question.num_rows, options)
                work = self.limits.check(rows, options.samples, model.values_per_sample(options))
                speed = speed_key(version.artifact_key, options)
                with self.admission.entered(speed, rows, options.samples, work):
                    with measure.stage("decode"):
                        encode = partial(self.encode, model, question, options)
                        x, packed = await off_loop(question.num_bytes, encode)
                    del question  # its rows take several times the size of the tensor
                    t.reschedule(None)  # from here on the engine minds the deadline
                    entry = Entry(version.artifact_key, model, x, options, deadline)
                    computed = await self._compute(entry, rows)
        prediction = computed.prediction
        assert not isinstance(prediction, Scored)  # which only labels ask for
        stored = None if known is None else known.id
        if packed is not None:  # before it is answered: an id that is told exists
            settled, left = with_samples(options, prediction), deadline - perf_counter()
            stored = await self.storing.add(caller, version, settled, packed, left)
        measure.stages |= {"queue": computed.queue_seconds, "compute": computed.compute_seconds}
        timings = Timings(computed.queue_seconds, computed.compute_seconds, measure.seconds)
        return Answer(version, prediction, timings, stored)

    async def _compute(self, entry: Entry, counted: int) -> Computed:
        """Wait for the engine, and count what texts turned out to be beside their number.

        Raises:
            Unavailable: as `answer` does.
        """
        more, samples = entry.rows - counted, entry.options.samples
        with self.admission.entered(entry.speed_key, more, samples, more * samples, requests=0):
            return await self.engine.compute(entry)

    def encode(
        self, model: TrainedModel, question: Question, options: PredictOptions
    ) -> tuple[Encoded, PackedRows | None]:
        """The rows as the model takes them, and packed if they are to be stored.

        Of texts the longest one counts for all.

        Raises:
            TooLarge: if there are more steps to compute than may be, before room is made for them,
                or more to store.
        """
        packed = self.storing.pack(model, question) if question.store else None
        refuse_dependent_rows(model, allowed=question.may_be_series)
        decode_future = question.decode_future
        if decode_future is not None and not model.future_inputs:
            message = "this model has no covariates, and needs nothing of the future"
            raise Invalid([("/future", message)])
        columns = question.decode(model.inputs)
        rows = model.num_rows(len(next(iter(columns.values()))), options)
        self.limits.check(rows, options.samples, model.num_steps(columns), "steps")
        future = None if decode_future is None else decode_future(model.future_inputs)
        return model.read(columns, future, options), packed

    @contextmanager
    def _in_time(self, deadline_seconds: float | None) -> Iterator[None]:
        """Say that the deadline was missed, and when it may be worth another try."""
        try:
            yield
        except TimeoutError:
            if deadline_seconds is None:
                raise
            message = f"no answer is ready within deadline_ms={1000 * deadline_seconds:g}"
            raise Unavailable(message, self.admission.drain_seconds()) from None


def refuse_dependent_rows(model: TrainedModel, *, allowed: bool = False) -> None:
    """Raise `Invalid` where only rows that are predicted one by one can be read."""
    if not (allowed or model.has_independent_rows):
        message = f"the task {model.task} does not predict rows one by one: send POST /predict"
        raise Invalid([("/model", message)])
