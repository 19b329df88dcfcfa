"""The worker processes, and the time of the last heartbeat of each."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, select

from core.clock import database_now
from core.database.database import Database
from core.database.schema import WorkerRow

FORGET_AFTER = timedelta(days=1)


class Workers:
    """Heartbeats of worker processes, for health and metrics. Jobs have their own leases."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, worker_id: str, device: str, started_at: datetime) -> None:
        """Store a heartbeat, and delete workers without one for `FORGET_AFTER`."""
        with self._database.begin() as session:
            moment = database_now(session)
            session.execute(delete(WorkerRow).where(WorkerRow.heartbeat_at < moment - FORGET_AFTER))
            session.merge(
                WorkerRow(id=worker_id, device=device, started_at=started_at, heartbeat_at=moment)
            )

    def leave(self, worker_id: str) -> None:
        """Delete a worker that stops, so that it does not count as lost."""
        with self._database.begin() as session:
            session.execute(delete(WorkerRow).where(WorkerRow.id == worker_id))

    def list(self) -> Sequence[WorkerRow]:
        """The workers, the one with the newest heartbeat first."""
        with self._database.read() as session:
            return session.scalars(select(WorkerRow).order_by(WorkerRow.heartbeat_at.desc())).all()
