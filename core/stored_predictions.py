"""Questions that were answered and are kept, so that they can be answered again exactly.

An answer depends on version, variant, rows, samples, sampler and seed alone: these are kept, the
answer is not. They go with their version, and after `CREDENCE_STORED_DAYS`.
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import delete

from core import versions
from core.database import Database
from core.exceptions import NotFound, TooLarge
from core.names import check_identifier, new_id, now
from core.schema import Json, PredictionRow
from models.prediction.prediction import PredictOptions


@dataclass(frozen=True)
class PackedRows:
    """What was asked about, as `core.columns.packing` writes it; `future` of a forecast."""

    rows: int
    inputs: bytes
    future: bytes | None = None


@dataclass(frozen=True)
class StoredPrediction:
    """A question: `options` are those with which it was answered, settled."""

    id: str
    model: str
    version: int
    options: PredictOptions
    packed: PackedRows


class StoredPredictions:
    """In the database, where every replica finds them."""

    def __init__(self, database: Database, max_bytes: int) -> None:
        self._database = database
        self._max_bytes = max_bytes

    def check_size(self, packed: PackedRows) -> PackedRows:
        """The same rows; `TooLarge` if they take more than `CREDENCE_MAX_STORED_BYTES`."""
        size = len(packed.inputs) + len(packed.future or b"")
        if size > self._max_bytes:
            raise TooLarge(
                f"a prediction that is stored may take {self._max_bytes} bytes "
                f"(CREDENCE_MAX_STORED_BYTES), and these rows take {size}: "
                "split them over several requests"
            )
        return packed

    def add(self, model: str, version: int, options: PredictOptions, packed: PackedRows) -> str:
        """Keep a question; its id.

        Raises:
            NotFound: if the version was deleted meanwhile.
            Unavailable: when the database does not answer.
        """
        row = PredictionRow(
            id=new_id("pred"),
            model=model,
            version=version,
            options=asdict(options),
            rows=packed.rows,
            inputs=packed.inputs,
            future=packed.future,
            created_at=now(),
        )
        with self._database.begin() as session:
            versions.hold(session, model, version)
            session.add(row)
        return row.id

    def get(self, prediction_id: str) -> StoredPrediction:
        """A question by its id; raises `NotFound`."""
        check_identifier("prediction", prediction_id)
        with self._database.read() as session:
            row = session.get(PredictionRow, prediction_id)
            if row is None:
                raise NotFound("prediction", prediction_id)
            packed = PackedRows(row.rows, row.inputs, row.future)
            return StoredPrediction(row.id, row.model, row.version, _options(row.options), packed)

    def sweep(self, before: datetime) -> None:
        """Forget those that were stored before this time."""
        with self._database.begin() as session:
            session.execute(delete(PredictionRow).where(PredictionRow.created_at < before))


def _options(stored: Json) -> PredictOptions:
    """JSON has lists where options have tuples."""
    given: Json = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    return PredictOptions(**given)
