"""Makes the response of a prediction request: read, find the model, compute, write."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeVar

from app.http.held_memory import HeldMemory
from app.http.large_work import INLINE_BYTES, LargeWork
from app.metrics.metrics import PredictMeasure
from app.serving.adaptation import Adaptation
from app.serving.admission import Admission, Limits
from app.serving.batching import Computed, Entry, Unencoded
from app.serving.engine import Engine
from app.serving.kept import check_kept
from app.serving.model_cache import ModelCache
from app.serving.prediction_store import PredictionStore, with_samples
from app.serving.request import PredictionRequest, PredictionResponse, Timings
from app.serving.resolutions import Resolutions, Resolved
from app.serving.versions import VersionLookup
from core.access.callers import Caller
from core.exceptions import Invalid, Unavailable
from core.predictions.stored_predictions import PackedRows
from core.registry.registry import Version
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
    large_work: LargeWork
    admission: Admission
    store: PredictionStore
    adaptation: Adaptation
    observe: Callable[[PredictMeasure, Prediction], None]
    resolutions: Resolutions = field(default_factory=Resolutions)

    async def respond(
        self,
        body: bytes,
        read: Read[T],
        measure: PredictMeasure,
        caller: Caller,
        held: HeldMemory,
        *,
        num_bytes: int | None = None,
    ) -> T:
        """The written response. Large bodies and responses are processed in threads.

        Args:
            read: reads the body; also returns the function that writes the response.
            held: takes memory for the rows and the response, or raises `Unavailable`.
            num_bytes: of the body once it is decoded, if that is more than it has.

        Raises:
            NotParseable, Invalid: `read` refuses the body. Also the exceptions of `predict`.
        """
        call, share = self.large_work.call, caller.share
        size = len(body) if num_bytes is None else num_bytes
        request, write = await measure.timed("decode", call(share, size, read, body))
        held.rows(request.num_bytes)
        work = self.predict(request, measure, caller)
        del body, request  # frees several times the size of the columns before the queue
        response = await work
        held.response(response.num_bytes)
        written = await measure.timed("encode", call(share, response.num_bytes, write, response))
        measure.record_spans(response.version.version, response.prediction)
        await call(share, response.num_bytes, self.observe, measure, response.prediction)
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
        deadline = math.inf if seconds is None else measure.started + seconds
        work = self._predict(request, deadline, measure, caller)
        del request
        try:
            return await work
        except TimeoutError:
            if seconds is None:
                raise
            message = f"no answer is ready within deadline_ms={1000 * seconds:g}"
            raise Unavailable(message, self.admission.drain_seconds()) from None

    async def _predict(
        self, request: PredictionRequest, deadline: float, measure: PredictMeasure, caller: Caller
    ) -> PredictionResponse:
        self.limits.check_samples(request.options.samples)  # rows once the model is known
        found = await _before(deadline, self._find(request, measure, caller))
        model, options, resolved = found.model, found.options, found.resolved
        if request.file is not None:
            check_kept(model, request.file.kept)
        rows = model.num_rows(request.num_rows, options)
        work = self.limits.work(rows, options.samples, resolved.per_sample)
        self.limits.check_answer(rows, model.values_per_row(options))
        share, call = caller.share, self.large_work.call
        with self.admission.entered(
            resolved.speed, rows, options.samples, work, caller=share
        ) as ticket:
            stores = request.store and found.stored is None
            encode = partial(self.encode, model, request, options, stores)
            x, columns, packed = await measure.timed(
                "decode", _before(deadline, call(share, request.num_bytes, encode))
            )
            report, notes, num_bytes = request.file, request.notes, request.num_bytes
            del request, encode  # frees its rows, several times the size of the tensor
            unit = resolved.unit
            entry = Entry(
                found.version.artifact_key,
                model,
                x,
                options,
                deadline,
                unit=unit,
                joint_work=model.size(x) if unit is None else None,
                per_sample=resolved.per_sample,
                caller=share,
                on_slice=ticket.progress,
            )
            computed = await self._compute(entry, rows, resolved)
        prediction = await call(share, num_bytes, model.with_reasons, computed.prediction, columns)
        stored = found.stored
        if packed is not None:  # before the response, so that its id exists
            again, left = with_samples(options, prediction), deadline - perf_counter()
            stored = await self.store.add(caller, found.version, again, packed, left)
        measure.stages |= {"queue": computed.queue_seconds, "compute": computed.compute_seconds}
        timings = Timings(computed.queue_seconds, computed.compute_seconds, measure.seconds)
        return PredictionResponse(found.version, prediction, timings, stored, report, notes)

    async def _find(
        self, request: PredictionRequest, measure: PredictMeasure, caller: Caller
    ) -> "_Found":
        """The version that a request means, its model, and the options with every default."""
        known = await self.store.made_before(caller) if request.store else None
        # of a request that was stored, use the version that was resolved at that time
        reference = request.version if known is None else known.version
        version = await self.versions.find(caller.view, request.model, reference)
        measure.model = version.model
        model = await self.cache.get(version)
        resolved = self.resolutions.find(version, model, request.options)
        options = await self.adaptation.resolve(version, model, resolved.options)
        return _Found(version, model, resolved, options, None if known is None else known.id)

    async def _compute(self, entry: Entry, counted: int, resolved: Resolved) -> Computed:
        """The result of the engine. Counts the work of the entry that was not counted before.

        Args:
            counted: rows that were counted before: a text as one, and one series of several.

        Raises:
            TooLarge: a part that cannot be cut is too long, and others would wait for it.
            Unavailable: too many requests wait, or the engine has stopped.
        """
        self.limits.check_whole(self.engine.seconds(entry, entry.whole_rows))
        more, samples = entry.rows - counted, entry.options.samples
        if not more:
            return await self.engine.compute(entry)
        work = more * samples * resolved.per_sample
        with self.admission.entered(
            resolved.speed, more, samples, work, requests=0, caller=entry.caller
        ) as ticket:
            entry.on_slice = _both(entry.on_slice, ticket.progress)
            return await self.engine.compute(entry)

    def encode(
        self,
        model: TrainedModel,
        request: PredictionRequest,
        options: ResolvedOptions,
        stores: bool = False,
    ) -> tuple[Encoded, Columns, PackedRows | None]:
        """The rows encoded for the model, as columns, and packed if the request is stored.

        A few rows of a table are left to the engine, which encodes all rows of a batch at once.

        Raises:
            TooLarge: the rows need too many steps (checked before memory is allocated), or are too
                large to be stored.
        """
        packed = self.store.pack(model, request) if stores else None
        decode_future = request.decode_future
        if decode_future is not None and not model.future_inputs:
            message = "this model has no covariates: leave out future"
            raise Invalid([("/future", message)])
        columns = request.columns(model.inputs, model.unread)
        rows, samples = model.num_predicted(columns, options), options.samples
        self.limits.work(rows, samples, model.num_steps(columns), "steps")
        self.limits.work(rows, samples, model.values_per_sample(options))
        self.limits.check_answer(rows, model.values_per_row(options))
        if request.num_bytes <= INLINE_BYTES and model.has_independent_rows:
            return Unencoded(model, columns, rows), columns, packed
        future = None if decode_future is None else decode_future(model.future_inputs, model.unread)
        return model.read(columns, future, options), columns, packed


@dataclass(frozen=True)
class _Found:
    """What a request means. `stored` is the id of the same request, if it was stored before."""

    version: Version
    model: TrainedModel
    resolved: Resolved
    options: ResolvedOptions
    stored: str | None


def _both(one: Callable[[float], None], other: Callable[[float], None]) -> Callable[[float], None]:
    def report(share: float) -> None:
        one(share)
        other(share)

    return report


async def _before(deadline: float, work: Awaitable[T]) -> T:
    """The result of `work`. Raises `TimeoutError` at the deadline, in seconds of `perf_counter`."""
    if math.isinf(deadline):
        return await work
    async with asyncio.timeout(deadline - perf_counter()):
        return await work


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
