"""The request and the response of a prediction, independent of the wire format."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from app.schemas.predictions import PredictParameters
from app.serving.admission import BYTES_OF_A_NUMBER
from app.serving.versions import Reference
from core.inputs.sentinels import with_sentinels, without_sentinels
from core.registry.registry import Version
from models.features.columns import Columns, InputColumn
from models.prediction.options import BatchOptions
from models.prediction.prediction import Prediction

Decode = Callable[[Sequence[InputColumn], Collection[str]], Columns]
"""The columns of the model → their arrays; names of the second argument may be there, unread."""


@dataclass(frozen=True)
class FileReport:
    """How a file of rows was read. The lists are filled when the rows are decoded.

    Args:
        reading: delimiter, encoding, … as found out.
        ignored: names of columns that are no features.
        notes: what the caller should know about the rows.
        kept: columns to copy before the predictions, as they are in the file.
    """

    reading: Mapping[str, Any]
    kept: pa.Table
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Members of a response: all but the columns."""
        return {"reading": self.reading, "ignored": self.ignored, "notes": self.notes}


@dataclass(frozen=True, kw_only=True)
class PredictionRequest:
    """A prediction request.

    Args:
        num_bytes: of the body; decides which thread decodes the rows.
        decode: the columns of the rows.
        decode_future: the columns of the steps ahead; None if there are none.
        store: whether to store the request for later labels.
        file: what was found in the file of the rows; None for other formats.
        notes: what the caller should know about the rows; filled by `columns`.
    """

    model: str
    version: Reference
    options: BatchOptions
    num_rows: int
    num_bytes: int
    decode: Decode
    decode_future: Decode | None = None
    deadline_seconds: float | None = None
    store: bool = False
    file: FileReport | None = None
    notes: list[str] = field(default_factory=list)

    def columns(self, features: Sequence[InputColumn], unread: Collection[str] = ()) -> Columns:
        """The rows' columns. Numbers that stand for a missing value are missing, and noted."""
        self.notes.clear()
        given = self.decode(with_sentinels(features), unread)
        read, notes = without_sentinels(given, features)
        self.notes.extend(notes)
        return read

    @classmethod
    def of(
        cls,
        parameters: PredictParameters,
        num_rows: int,
        num_bytes: int,
        decode: Decode,
        *,
        decode_future: Decode | None = None,
    ) -> "PredictionRequest":
        """The request with these parameters and rows."""
        milliseconds = parameters.deadline_ms
        return cls(
            model=parameters.model,
            version=parameters.version,
            options=parameters,
            num_rows=num_rows,
            num_bytes=num_bytes,
            decode=decode,
            decode_future=decode_future,
            deadline_seconds=None if milliseconds is None else milliseconds / 1000,
            store=parameters.store,
        )


@dataclass(frozen=True)
class Timings:
    """Seconds of a request in the queue, in the engine and in total."""

    queue: float
    compute: float
    total: float

    def milliseconds(self) -> dict[str, float]:
        """Milliseconds by stage, for responses."""
        seconds = {"queue": self.queue, "compute": self.compute, "total": self.total}
        return {stage: round(1000 * value, 3) for stage, value in seconds.items()}


@dataclass(frozen=True)
class PredictionResponse:
    """A response, which a wire format writes. `id` is that of the stored request, if any.

    `file` tells how the file of the rows was read, `notes` what the caller should know about them.
    """

    version: Version
    prediction: Prediction
    timings: Timings
    id: str | None = None
    file: FileReport | None = None
    notes: Sequence[str] = ()

    @property
    def num_bytes(self) -> int:
        """The approximate size as text; decides which thread writes it."""
        kept = 0 if self.file is None else self.file.kept.nbytes
        return BYTES_OF_A_NUMBER * self.prediction.num_values + kept
