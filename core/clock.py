"""One clock for the times that several machines compare: the database server's.

The clocks of workers and replicas may differ by minutes. Nothing is taken from a worker because of
a time that is stored (`core.process.watch`); what is stored is for people, metrics and the queue's
order.
"""

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from core.database.dialects import is_sqlite
from core.names import now


def present(session: Session) -> datetime:
    """The time by PostgreSQL's clock; all who share a SQLite file share this machine's."""
    if is_sqlite(session):
        return now()
    return session.scalars(select(func.clock_timestamp())).one()
