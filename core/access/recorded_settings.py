"""Writes into the audit log with which settings the service runs, whenever they have changed."""

from typing import Any

from sqlalchemy import select

from core.access import audit
from core.access.callers import SERVICE
from core.database.database import Database
from core.database.schema import AuditRow
from core.settings import Settings
from core.urls import mask

ACTION = "settings.change"
PLACE = "data_dir"  # the log is in it


def record_settings(database: Database, settings: Settings) -> None:
    """Write a line with all settings that were given, unless the newest such line has the same.

    Passwords in URLs are masked; other secrets are in files, of which the path is written.
    """
    given = describe(settings)
    newest = select(AuditRow).where(AuditRow.action == ACTION).order_by(AuditRow.number.desc())
    with database.begin() as session:
        last = session.scalars(newest.limit(1)).first()
        if given != (last.details if last else {}):
            audit.record(session, SERVICE, ACTION, "settings", **given)


def describe(settings: Settings) -> dict[str, Any]:
    """The settings that were given, as text, without passwords."""
    given = sorted(settings.model_fields_set - {PLACE})
    return {name: mask(str(getattr(settings, name))) for name in given}
