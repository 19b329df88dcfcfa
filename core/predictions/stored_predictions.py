"""Requests that are kept, so that they can be predicted again exactly.

An answer depends on version, variant, rows, samples, sampler and seed alone: these are kept, the
answer is not. They go with their version, and after `CREDENCE_STORED_DAYS`.
"""

from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import delete

from core.access.callers import EVERYBODY, MODEL, SERVICE, Caller, owner_of
from core.access.idempotency import Replies
from core.access.quotas import check_bytes
from core.clock import now
from core.database.database import Database
from core.database.schema import Json, PredictionRow
from core.database.statements import delete_before
from core.exceptions import NotFound, TooLarge
from core.names import check_identifier, new_id
from core.registry import versions
from models.prediction.options import ResolvedOptions


@dataclass(frozen=True)
class PackedRows:
    """The rows of a request, as `core.datasets.columns.packing` writes it; `future` of a
    forecast.
    """

    rows: int
    inputs: bytes
    future: bytes | None = None

    @property
    def bytes(self) -> int:
        """That are kept."""
        return len(self.inputs) + len(self.future or b"")


@dataclass(frozen=True)
class StoredPrediction:
    """A request, with the options by which it was predicted."""

    id: str
    model: str
    version: int
    options: ResolvedOptions
    packed: PackedRows


class StoredPredictions:
    """In the database, where every replica finds them."""

    def __init__(self, database: Database, max_bytes: int, caller: Caller = SERVICE) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._caller = caller

    def check_size(self, packed: PackedRows) -> PackedRows:
        """The same rows; `TooLarge` if they take more than `CREDENCE_MAX_STORED_BYTES`."""
        if packed.bytes > self._max_bytes:
            raise TooLarge(
                f"a prediction that is stored may take {self._max_bytes} bytes "
                f"(CREDENCE_MAX_STORED_BYTES), and these rows take {packed.bytes}: "
                "split them over several requests"
            )
        return packed

    def add(self, model: str, version: int, options: ResolvedOptions, packed: PackedRows) -> str:
        """Keep a request; returns its id.

        Raises:
            NotFound: if the version was deleted meanwhile.
            QuotaExceeded: the caller has stored as much as it may.
            AlreadyCompleted: the same request has stored it meanwhile.
            Unavailable: when the database does not answer.
        """
        row = PredictionRow(
            id=new_id("pred"),
            owner=self._caller.owner,
            key=self._caller.key or "",
            model=model,
            version=version,
            options=asdict(options),
            rows=packed.rows,
            inputs=packed.inputs,
            future=packed.future,
            bytes=packed.bytes,
            created_at=now(),
        )
        with self._database.begin() as session:
            versions.lock_version(session, model, version)
            check_bytes(session, self._caller, row.bytes)
            session.add(row)
            self._caller.record(session, row.id)
        return row.id

    def made_before(self) -> StoredPrediction | None:
        """What the caller's request has stored when it came before.

        Raises:
            KeyReused: its idempotency key belongs to another request.
            NotFound: what it stored is gone.
        """
        operation = self._caller.operation
        completed = operation and Replies(self._database).find(operation)
        if not (operation and completed):
            return None
        completed.check(operation)
        return self.get(completed.resource)

    def get(self, prediction_id: str) -> StoredPrediction:
        """A request by its id; raises `NotFound`."""
        check_identifier("prediction", prediction_id)
        with self._database.read() as session:
            row = session.get(PredictionRow, prediction_id)
            if row is None or not self._is_mine(row):
                raise NotFound("prediction", prediction_id)
            owner_of(session, self._caller, MODEL, row.model)
            packed = PackedRows(row.rows, row.inputs, row.future)
            return StoredPrediction(row.id, row.model, row.version, _options(row.options), packed)

    def delete(self, prediction_id: str) -> None:
        """Delete a request; the scores of its labels stay. Raises `NotFound`."""
        self.get(prediction_id)
        with self._database.begin() as session:
            session.execute(delete(PredictionRow).where(PredictionRow.id == prediction_id))

    def _is_mine(self, row: PredictionRow) -> bool:
        return self._caller.view.sees_all or row.owner in (EVERYBODY, self._caller.owner)

    def sweep(self, before: datetime) -> None:
        """Forget those that were stored before this time."""
        delete_before(self._database, PredictionRow.created_at, before)


def _options(stored: Json) -> ResolvedOptions:
    """JSON has lists where options have tuples."""
    given: Json = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    return ResolvedOptions(**given)
