"""Alembic's migrations of `core.database.schema`, and the function that runs them.

To add one, change `core.database.schema`, then write `versions/…` like the newest. A test compares
the two.
"""

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, text

from core.exceptions import InvalidSetting

LOCK = 0x63726564  # "cred"; no other advisory lock has this number


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations in the connection's transaction, one process at a time.

    SQLite's transaction is a lock on the whole file already (`BEGIN IMMEDIATE`); PostgreSQL gets
    an advisory lock, which ends with the transaction.

    Raises:
        InvalidSetting: when the schema belongs to an unknown release.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    config = Config()
    config.set_main_option("script_location", "core:database/migrations")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        raise InvalidSetting(
            f"CREDENCE_DATABASE_URL: this database belongs to another release ({error}): "
            "run that release, or give an empty database"
        ) from error
