"""Alembic's migrations of `core.database.schema`, and the function that runs them.

To add one, change `core.database.schema`, then write `versions/…` like the newest. A test compares
the two. Releases overlap while replicas are replaced, and an operator may go back to the one
before: so a migration only expands the schema, and says in `compatible_from` which releases bear
it (docs/contributing.md).
"""

from dataclasses import dataclass

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select, text

from core.exceptions import InvalidSetting

LOCK = 0x63726564  # "cred"; no other advisory lock has this number
# Beside Alembic's own table, and as that not in `schema`: one row, the oldest revision.
RECORD = Table(
    "schema_compatibility", MetaData(), Column("compatible_from", String(32), nullable=False)
)
DDL_WAIT = (
    "5s"  # a change of a table waits no longer for others, and keeps others waiting no longer
)


@dataclass(frozen=True)
class Revision:
    """A database's revision, and the oldest one whose release works with its schema."""

    number: str | None  # None: an empty database
    compatible_from: str | None
    head: str  # this release's
    known: frozenset[str]  # to this release

    @property
    def is_later(self) -> bool:
        """Whether a later release has changed the schema."""
        return self.number is not None and self.number not in self.known

    @property
    def is_compatible(self) -> bool:
        """Whether this release works with the schema, once its own migrations have run."""
        return not self.is_later or self.compatible_from in self.known


def revision_of(connection: Connection) -> Revision:
    """The revision of a database. It changes nothing."""
    script = ScriptDirectory.from_config(_config(connection))
    return Revision(
        MigrationContext.configure(connection).get_current_revision(),
        _compatible_from(connection),
        script.get_current_head() or "",
        frozenset(found.revision for found in script.walk_revisions()),
    )


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Run the missing migrations in the connection's transaction, one process at a time.

    SQLite's transaction is a lock on the whole file already (`BEGIN IMMEDIATE`); PostgreSQL gets
    an advisory lock, which ends with the transaction. A schema that a later release has expanded
    is left as it is.

    Raises:
        InvalidSetting: when this release does not work with the schema of a later one.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        connection.execute(text(f"SET LOCAL lock_timeout = '{DDL_WAIT}'"))
    found = revision_of(connection)
    if not found.is_compatible:
        oldest = found.compatible_from or found.number
        raise InvalidSetting(
            f"CREDENCE_DATABASE_URL: a later release has brought this database to revision "
            f"{found.number}, which works from revision {oldest} on; this release has "
            f"{found.head}: run a later one, or restore a backup"
        )
    if not found.is_later:
        config = _config(connection)
        command.upgrade(config, revision)
        _record(connection, ScriptDirectory.from_config(config))


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", "core:database/migrations")
    config.attributes["connection"] = connection
    return config


def _compatible_from(connection: Connection) -> str | None:
    if not inspect(connection).has_table(RECORD.name):
        return None
    return connection.scalar(select(RECORD.c.compatible_from))


def _record(connection: Connection, script: ScriptDirectory) -> None:
    """Write down from which revision on releases work with the schema as it is now."""
    number = MigrationContext.configure(connection).get_current_revision()
    if number is None:
        return
    oldest = getattr(script.get_revision(number).module, "compatible_from", number)
    if oldest != _compatible_from(connection):
        RECORD.create(connection, checkfirst=True)
        connection.execute(RECORD.delete())
        connection.execute(RECORD.insert().values(compatible_from=oldest))
