"""Alembic's migrations, run by `core.database.migrate`."""
