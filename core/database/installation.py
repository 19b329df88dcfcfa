"""Which database this is: a name of its own, given by the migration, that a copy keeps.

Files in a store bear it where nothing else says whose they are. A process that was started with
another database, such as an empty one by mistake, then takes none of them for forgotten.
"""

import secrets

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.database.dialects import upsert
from core.database.schema import InstallationRow


def identity(session: Session) -> str:
    """Twelve hexadecimal digits, the same for as long as the database lives."""
    query = select(InstallationRow.id)
    found = session.scalars(query).one_or_none()
    if found is None:
        row = {"only": 1, "id": secrets.token_hex(6)}
        session.execute(upsert(session, InstallationRow).values(row).on_conflict_do_nothing())
        found = session.scalars(query).one()
    return found
