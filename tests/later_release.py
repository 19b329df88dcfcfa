"""What a later release does to a database: more tables and columns, and a revision unknown here."""

from sqlalchemy import Connection, text

LATER = "9999"
EXPANSION = (
    "ALTER TABLE models ADD COLUMN colour VARCHAR(16)",
    "ALTER TABLE workers ADD COLUMN room VARCHAR(16) DEFAULT 'cellar' NOT NULL",
    "CREATE TABLE colours (name VARCHAR(16) NOT NULL PRIMARY KEY)",
)


def expand(connection: Connection, compatible_from: str | None = None) -> None:
    """Migrate to a later revision, which works from `compatible_from` on, or from itself."""
    for statement in EXPANSION:
        connection.execute(text(statement))
    later = {"later": LATER}
    connection.execute(text("UPDATE alembic_version SET version_num = :later"), later)
    oldest = {"oldest": compatible_from or LATER}
    connection.execute(text("UPDATE schema_compatibility SET compatible_from = :oldest"), oldest)
