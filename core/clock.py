"""Two clocks: this machine's, and the database server's for times that several machines compare.

The clocks of workers and replicas may differ by minutes. No lease is judged by a stored time
(`core.process.watch` measures by a steady clock): stored times are for people, metrics and the
order of the queue.
"""

from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.database.statements import is_sqlite


def now() -> datetime:
    """The time by this machine's clock, in UTC."""
    return datetime.now(UTC)


def database_now(session: Session) -> datetime:
    """The time by PostgreSQL's clock; with SQLite, which one machine alone uses, as `now`."""
    return now() if is_sqlite(session) else session.scalars(select(func.clock_timestamp())).one()
