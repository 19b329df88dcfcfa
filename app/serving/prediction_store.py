"""Stores prediction requests for later labels, before their responses are sent.

The writers have threads of their own: a database that hangs delays no other requests.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio
from anyio import to_thread

from app.serving.request import PredictionRequest
from core.access.callers import SERVICE, Caller
from core.access.idempotency import AlreadyCompleted
from core.datasets.columns.packing import pack, unpack
from core.exceptions import Invalid, Unavailable
from core.predictions.stored_predictions import PackedRows, StoredPrediction, StoredPredictions
from core.registry.registry import Version
from models.model import TrainedModel
from models.prediction.options import ResolvedOptions
from models.prediction.prediction import Prediction

TIMEOUT_SECONDS = 5.0
T = TypeVar("T")

MAX_WRITERS = 8  # threads that may wait for a database that hangs


class PredictionStore:
    """Writes to the table of stored predictions, with a time limit. For use on the event loop."""

    def __init__(self, stored: Callable[[Caller], StoredPredictions]) -> None:
        self._stored = stored
        self._threads = anyio.CapacityLimiter(MAX_WRITERS)

    def pack(self, model: TrainedModel, request: PredictionRequest) -> PackedRows:
        """The rows of a request as bytes.

        Raises:
            Invalid: the model takes no labels, or a value is wrong.
            TooLarge: the bytes exceed the limit of a stored prediction.
        """
        if model.no_labels:
            raise Invalid([("/store", f"is not stored: {model.no_labels}")])
        future = None
        if request.decode_future is not None and model.future_inputs:
            steps = request.decode_future(model.future_inputs, model.unread)
            future = pack(steps, model.future_inputs)
        inputs = pack(request.columns(model.inputs, model.unread), model.inputs)
        return self._stored(SERVICE).check_size(PackedRows(request.num_rows, inputs, future))

    async def add(
        self,
        caller: Caller,
        version: Version,
        options: ResolvedOptions,
        packed: PackedRows,
        seconds: float,
    ) -> str:
        """Store a request within `seconds`, at most `TIMEOUT_SECONDS`, and return its id.

        Raises:
            Unavailable: the database does not store it in time.
        """
        write = partial(self._stored(caller).add, version.model, version.version, options, packed)
        try:
            return await self._in_time(write, min(seconds, TIMEOUT_SECONDS))
        except AlreadyCompleted:  # the same request, at the same time
            made = await self.made_before(caller)
            assert made is not None, "the other request has committed"
            return made.id

    async def made_before(self, caller: Caller) -> StoredPrediction | None:
        """The prediction that the same request stored before; None if there is none."""
        if caller.operation is None:
            return None
        return await self._in_time(self._stored(caller).made_before, TIMEOUT_SECONDS)

    async def _in_time(self, work: Callable[[], T], seconds: float) -> T:
        try:
            with anyio.fail_after(max(0.0, seconds)):
                return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=self._threads)
        except TimeoutError:
            message = "the database does not store the prediction in time: send it without store"
            raise Unavailable(message) from None


def with_samples(options: ResolvedOptions, prediction: Prediction) -> ResolvedOptions:
    """Options that draw exactly the samples of this prediction again.

    What its adaptive intervals followed is not kept: their coverage is that of the labels' order.
    """
    samples = prediction.samples or options.samples  # moments draw none
    return replace(options, samples=samples, target_mc_error=None, return_draws=False, adapted=())


def request_of(stored: StoredPrediction) -> PredictionRequest:
    """The request of a stored prediction."""
    packed = stored.packed
    future = packed.future
    return PredictionRequest(
        model=stored.model,
        version=stored.version,
        options=stored.options,
        num_rows=packed.rows,
        num_bytes=len(packed.inputs),
        decode=lambda inputs, _: unpack(packed.inputs, inputs),
        decode_future=None if future is None else lambda inputs, _: unpack(future, inputs),
    )
