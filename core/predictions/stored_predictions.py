"""Stored requests, from which the same prediction can be computed again.

A prediction depends only on version, variant, rows, samples, sampler and seed. These are stored;
the prediction is not. They are deleted with their version, or after `CREDENCE_STORED_DAYS`.
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
    """The rows of a request, and the `future` of a forecast (`core.datasets.columns.packing`)."""

    rows: int
    inputs: bytes
    future: bytes | None = None

    @property
    def bytes(self) -> int:
        """The size of both in bytes."""
        return len(self.inputs) + len(self.future or b"")


@dataclass(frozen=True)
class StoredPrediction:
    """A stored request with its options."""

    id: str
    model: str
    version: int
    options: ResolvedOptions
    packed: PackedRows


class StoredPredictions:
    """The table of stored requests."""

    def __init__(self, database: Database, max_bytes: int, caller: Caller = SERVICE) -> None:
        self._database = database
        self._max_bytes = max_bytes
        self._caller = caller

    def check_size(self, packed: PackedRows) -> PackedRows:
        """Return `packed`, or raise `TooLarge` above `CREDENCE_MAX_STORED_BYTES`."""
        if packed.bytes > self._max_bytes:
            raise TooLarge(
                f"a prediction that is stored may take {self._max_bytes} bytes "
                f"(CREDENCE_MAX_STORED_BYTES), and these rows take {packed.bytes}: "
                "split them over several requests"
            )
        return packed

    def add(self, model: str, version: int, options: ResolvedOptions, packed: PackedRows) -> str:
        """Store a request. Returns its id.

        Raises:
            NotFound: the version was deleted meanwhile.
            QuotaExceeded: the caller would store more than its quota.
            AlreadyCompleted: the same request was stored meanwhile.
            Unavailable: the database does not answer.
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
        """The stored request with the caller's idempotency key, or None.

        Raises:
            KeyReused: the key belongs to another request.
            NotFound: the stored request was deleted.
        """
        operation = self._caller.operation
        completed = operation and Replies(self._database).find(operation)
        if not (operation and completed):
            return None
        completed.check(operation)
        return self.get(completed.resource)

    def get(self, prediction_id: str) -> StoredPrediction:
        """A stored request. Raises `NotFound`."""
        check_identifier("prediction", prediction_id)
        with self._database.read() as session:
            row = session.get(PredictionRow, prediction_id)
            if row is None or not self._is_mine(row):
                raise NotFound("prediction", prediction_id)
            owner_of(session, self._caller, MODEL, row.model)
            packed = PackedRows(row.rows, row.inputs, row.future)
            return StoredPrediction(row.id, row.model, row.version, _options(row.options), packed)

    def delete(self, prediction_id: str) -> None:
        """Delete a stored request. The scores of its labels stay. Raises `NotFound`."""
        self.get(prediction_id)
        with self._database.begin() as session:
            session.execute(delete(PredictionRow).where(PredictionRow.id == prediction_id))

    def _is_mine(self, row: PredictionRow) -> bool:
        """Predictions of keys without owners belong to the key that stored them."""
        caller = self._caller
        if caller.key is not None and caller.owner == EVERYBODY:
            return row.key in ("", caller.key)
        if row.owner == EVERYBODY and row.key:
            return caller.view.sees_all
        return caller.view.sees_all or row.owner in (EVERYBODY, caller.owner)

    def sweep(self, before: datetime) -> None:
        """Delete requests that were stored before this time."""
        delete_before(self._database, PredictionRow.created_at, before)


def _options(stored: Json) -> ResolvedOptions:
    """The options from JSON, with its lists as tuples."""
    given: Json = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
    return ResolvedOptions(**given)
