"""One prediction, whatever the wire format: its request and its response."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.schemas.predictions import PredictParameters
from app.serving.versions import Reference
from core.registry.registry import Version
from models.features.columns import Columns, InputColumn
from models.prediction.options import BatchOptions
from models.prediction.prediction import Prediction

Decode = Callable[[Sequence[InputColumn]], Columns]


@dataclass(frozen=True, kw_only=True)
class PredictionRequest:
    """Which model predicts what.

    Args:
        num_bytes: of the rows as they came; decides which thread decodes them.
        decode: makes columns of the rows as they came.
        decode_future: the same for the columns of the steps ahead.
        rows_only: whether the format has room for independent rows alone.
        store: whether the request is kept, so that labels can come back.
    """

    model: str
    version: Reference
    options: BatchOptions
    num_rows: int
    num_bytes: int
    decode: Decode
    decode_future: Decode | None = None
    rows_only: bool = False
    deadline_seconds: float | None = None
    store: bool = False

    @classmethod
    def of(
        cls,
        parameters: PredictParameters,
        num_rows: int,
        num_bytes: int,
        decode: Decode,
        *,
        decode_future: Decode | None = None,
        rows_only: bool = False,
    ) -> "PredictionRequest":
        """The parameters of a request with the rows that came beside them."""
        milliseconds = parameters.deadline_ms
        return cls(
            model=parameters.model,
            version=parameters.version,
            options=parameters,
            num_rows=num_rows,
            num_bytes=num_bytes,
            decode=decode,
            decode_future=decode_future,
            rows_only=rows_only,
            deadline_seconds=None if milliseconds is None else milliseconds / 1000,
            store=parameters.store,
        )


@dataclass(frozen=True)
class Timings:
    """Where the time of a request went, in seconds."""

    queue: float
    compute: float
    total: float

    def milliseconds(self) -> dict[str, float]:
        """As responses show them."""
        seconds = {"queue": self.queue, "compute": self.compute, "total": self.total}
        return {stage: round(1000 * value, 3) for stage, value in seconds.items()}


@dataclass(frozen=True)
class PredictionResponse:
    """What a wire format writes; `id` is that of the stored request, if it was stored."""

    version: Version
    prediction: Prediction
    timings: Timings
    id: str | None = None

    @property
    def num_bytes(self) -> int:
        """About the size as text; decides which thread writes it."""
        return 20 * self.prediction.num_values
