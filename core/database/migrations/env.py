"""Alembic runs this for each command, on the connection of `core.database.database.migrate`."""

from alembic import context

from core.database.schema import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
