"""A prediction as it is asked and answered, whatever the wire format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.schemas.predictions import PredictParameters
from app.serving.resolver import Reference
from core.registry.registry import Version
from models.exceptions import InvalidInput
from models.features.columns import Columns, InputColumn
from models.language.prediction import TextPrediction
from models.prediction.options import BatchOptions
from models.prediction.prediction import Prediction

Decode = Callable[[Sequence[InputColumn]], Columns]


@dataclass(frozen=True)
class Question:
    """Which model is asked what. `decode` makes columns of the rows as they came on the wire."""

    model: str
    version: Reference
    options: BatchOptions
    deadline_seconds: float | None
    num_rows: int
    num_bytes: int  # of the rows as they came: it decides which thread decodes them
    decode: Decode
    decode_future: Decode | None = None  # of the covariates of a forecast
    may_be_series: bool = False
    store: bool = False

    @classmethod
    def of(
        cls,
        asked: PredictParameters,
        num_rows: int,
        num_bytes: int,
        decode: Decode,
        *,
        decode_future: Decode | None = None,
        may_be_series: bool = False,
    ) -> "Question":
        """What the parameters of a request ask about rows that came beside them."""
        return cls(
            asked.model,
            asked.version,
            asked,
            None if asked.deadline_ms is None else asked.deadline_ms / 1000,
            num_rows,
            num_bytes,
            decode,
            decode_future,
            may_be_series,
            asked.store,
        )


@dataclass(frozen=True)
class Timings:
    """Where the time of a request went, in seconds."""

    queue: float
    compute: float
    total: float

    def milliseconds(self) -> dict[str, float]:
        """As the answer tells them."""
        seconds = {"queue": self.queue, "compute": self.compute, "total": self.total}
        return {stage: round(1000 * value, 3) for stage, value in seconds.items()}


@dataclass(frozen=True)
class Answer:
    """What a wire format writes."""

    version: Version
    prediction: Prediction | TextPrediction
    timings: Timings
    id: str | None = None  # of the question, if it was stored

    @property
    def num_bytes(self) -> int:
        """About what it takes as text; it decides which thread writes it."""
        return 20 * self.prediction.num_values

    @property
    def rows_prediction(self) -> Prediction:
        """What was predicted of rows, for formats that have no place for texts.

        Raises:
            InvalidInput: if a language model was asked.
        """
        if isinstance(self.prediction, TextPrediction):
            raise InvalidInput("a language model answers in JSON alone", "/model")
        return self.prediction
