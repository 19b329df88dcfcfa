"""Makes the response of a prediction request: read, find the model, compute, write."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TypeVar

from app.http.bodies import off_loop
from app.metrics.metrics import PredictMeasure
from app.serving.adaptation import Adaptation
from app.serving.admission import Admission, Limits
from app.serving.batching import Computed, Entry, speed_key
from app.serving.engine import Engine
from app.serving.model_cache import ModelCache
from app.serving.prediction_store import PredictionStore, with_samples
from app.serving.request import PredictionRequest, PredictionResponse, Timings
from app.serving.versions import VersionLookup
from core.access.callers import Caller
from core.exceptions import Invalid, Unavailable
from core.predictions.stored_predictions import PackedRows
from models.features.columns import Columns
from models.model import Encoded, TrainedModel
from models.prediction.options import ResolvedOptions
from models.prediction.prediction import Prediction

T = TypeVar("T")

Write = Callable[[PredictionResponse], T]
Read = Callable[[bytes], tuple[PredictionRequest, Write[T]]]
"""Reads a body. Returns the request and the function that writes its response."""


@dataclass(frozen=True)
class Predictor:
    """The objects that all predictions of a process share."""

    limits: Limits
    versions: VersionLookup
    cache: ModelCache
    engine: Engine
    admission: Admission
    store: PredictionStore
    adaptation: Adaptation
    observe: Callable[[PredictMeasure, Prediction], None]

    async def respond(
        self, body: bytes, read: Read[T], measure: PredictMeasure, caller: Caller
    ) -> T:
        """The written response. Large bodies and responses are processed in threads.

        Args:
            read: reads the body; also returns the function that writes the response.

        Raises:
            NotParseable, Invalid: `read` refuses the body. Also the exceptions of `predict`.
        """
        with measure.stage("decode"):
            request, write = await off_loop(len(body), read, body)
        requests = [request]
        del body, request  # frees several times the size of the columns before the queue
        response = await self.predict(requests.pop(), measure, caller)
        with measure.stage("encode"):
            written = await off_loop(response.num_bytes, write, response)
        measure.record_spans(response.version.version, response.prediction)
        await off_loop(response.num_bytes, self.observe, measure, response.prediction)
        return written

    async def predict(
        self, request: PredictionRequest, measure: PredictMeasure, caller: Caller
    ) -> PredictionResponse:
        """
        Raises:
            Invalid, InvalidInput: the request is wrong.
            NotFound: there is no such model or version.
            TooLarge: the request exceeds a limit, whatever waits.
            Unavailable: too many requests wait, the deadline cannot be met, or the request cannot
                be stored.
        """
        seconds = request.deadline_seconds
        self.limits.check_samples(request.options.samples)  # rows once the model is known
        deadline = math.inf if seconds is None else measure.started + seconds
        with self._in_time(seconds):
            async with asyncio.timeout(None if seconds is None else deadline - perf_counter()) as t:
                known = await self.store.made_before(caller) if request.store else None
                if known is not None:  # use the version that was resolved at that time
                    request = replace(request, version=known.version, store=False)
                version = await self.versions.find(caller.view, request.model, request.version)
                measure.model = version.model
                model = await self.cache.get(version)
                options = model.resolve(request.options)
                options = await self.adaptation.resolve(version, model, options)
                rows = model.num_rows(request.num_rows, options)
                work = self.limits.work(rows, options.samples, model.values_per_sample(options))
                speed = speed_key(version.artifact_key, options)
                with self.admission.entered(speed, rows, options.samples, work):
                    with measure.stage("decode"):
                        encode = partial(self.encode, model, request, options)
                        x, columns, packed = await off_loop(request.num_bytes, encode)
                    report, num_bytes = request.file, request.num_bytes
                    del request  # frees its rows, several times the size of the tensor
                    t.reschedule(None)  # from here on, the engine checks the deadline
                    unit = model.unit(options)
                    entry = Entry(
                        version.artifact_key,
                        model,
                        x,
                        options,
                        deadline,
                        unit=unit,
                        joint_work=model.size(x) if unit is None else None,
                    )
                    computed = await self._compute(entry, rows, model.values_per_sample(options))
        prediction = await off_loop(num_bytes, model.with_reasons, computed.prediction, columns)
        stored = None if known is None else known.id
        if packed is not None:  # before the response, so that its id exists
            again, left = with_samples(options, prediction), deadline - perf_counter()
            stored = await self.store.add(caller, version, again, packed, left)
        measure.stages |= {"queue": computed.queue_seconds, "compute": computed.compute_seconds}
        timings = Timings(computed.queue_seconds, computed.compute_seconds, measure.seconds)
        return PredictionResponse(version, prediction, timings, stored, report)

    async def _compute(self, entry: Entry, counted: int, per_sample: int) -> Computed:
        """The result of the engine. Counts the work of the entry that was not counted before.

        Args:
            counted: rows that were counted before: a text as one, and one series of several.
            per_sample: values of each sample of a row.

        Raises:
            Unavailable: too many requests wait, or the engine has stopped.
        """
        more, samples = entry.rows - counted, entry.options.samples
        work = more * samples * per_sample
        with self.admission.entered(entry.speed_key, more, samples, work, requests=0):
            return await self.engine.compute(entry)

    def encode(
        self, model: TrainedModel, request: PredictionRequest, options: ResolvedOptions
    ) -> tuple[Encoded, Columns, PackedRows | None]:
        """The rows encoded for the model, as columns, and packed if the request is stored.

        Raises:
            TooLarge: the rows need too many steps (checked before memory is allocated), or are too
                large to be stored.
        """
        packed = self.store.pack(model, request) if request.store else None
        decode_future = request.decode_future
        if decode_future is not None and not model.future_inputs:
            message = "this model has no covariates: leave out future"
            raise Invalid([("/future", message)])
        columns = request.decode(model.inputs, model.unread)
        rows, samples = model.num_predicted(columns, options), options.samples
        self.limits.work(rows, samples, model.num_steps(columns), "steps")
        self.limits.work(rows, samples, model.values_per_sample(options))
        future = None if decode_future is None else decode_future(model.future_inputs, model.unread)
        return model.read(columns, future, options), columns, packed

    @contextmanager
    def _in_time(self, deadline_seconds: float | None) -> Iterator[None]:
        """Turn a missed deadline into `Unavailable` with the seconds after which to retry."""
        try:
            yield
        except TimeoutError:
            if deadline_seconds is None:
                raise
            message = f"no answer is ready within deadline_ms={1000 * deadline_seconds:g}"
            raise Unavailable(message, self.admission.drain_seconds()) from None


def check_data_sets(model: TrainedModel) -> None:
    """Raise `Invalid` unless the model predicts data sets: rows, or groups of rows."""
    if model.group_columns is None:
        check_independent_rows(model)


def check_independent_rows(model: TrainedModel) -> None:
    """Raise `Invalid` unless the model predicts each row independently."""
    if not model.has_independent_rows:
        task = model.task.replace("_", " ")
        message = f"is for {task}, which does not predict rows one by one: send POST /predict"
        raise Invalid([("/model", message)])
