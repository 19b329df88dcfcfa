"""Two clocks: this machine's, and the database server's for times that several machines compare.

The clocks of workers and replicas may differ by minutes. Stored times are for people, metrics and
the order of the queue. They do not decide whether a lease has ended: `core.process.watch` does,
by a monotonic clock.
"""

from datetime import UTC, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.database.statements import is_sqlite


def now() -> datetime:
    """The time of this machine's clock, in UTC."""
    return datetime.now(UTC)


def database_now(session: Session) -> datetime:
    """The time of PostgreSQL's clock. With SQLite `now()`, as only one machine uses the file."""
    return now() if is_sqlite(session) else session.scalars(select(func.clock_timestamp())).one()
