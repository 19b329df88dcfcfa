"""Removes expired rows, and files that crashes have left in the store and on this disk."""

from datetime import UTC, datetime, timedelta

import structlog

from core.context import Context
from core.process.periodic import Periodic
from core.process.watch import Watch
from core.storage.orphans import Orphans

log = structlog.get_logger()

CLEAN_SECONDS = 600.0
ARRIVAL_SECONDS = 3600.0  # a row follows its file within this time: it takes one transaction


def forget(context: Context) -> None:
    """Remove the rows whose time is up: stored predictions, first answers, lines of the audit."""
    settings, now = context.settings, datetime.now(UTC)
    context.stored_predictions.sweep(now - timedelta(days=settings.stored_days))
    context.replies.sweep(now - timedelta(hours=settings.idempotency_hours))
    context.audit.sweep(now - timedelta(days=settings.audit_days))


class Cleaner:
    """Cleans in a thread of its own, so that a store that hangs delays no other work."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._orphans = Orphans(context.database, context.store)
        self._rowless: Watch[str, None] = Watch(ARRIVAL_SECONDS)
        self._periodic = Periodic("cleaning", CLEAN_SECONDS, self.clean)
        self.start = self._periodic.start

    def stop(self) -> None:
        """Start no other round. Does not wait: the next process continues what is interrupted."""
        self._periodic.stop(wait=False)

    def clean(self) -> None:
        """Remove what there is to remove now."""
        forget(self._context)
        self._context.scratch.remove_leftovers()
        self._context.store.remove_leftovers()
        for key in self._orphans.find():
            self._remove(key)
        for key in self._rowless.unchanged(dict.fromkeys(self._orphans.find_rowless())):
            self._remove(key)

    def _remove(self, key: str) -> None:
        log.info("removing a file that no row refers to", key=key)
        self._context.store.delete(key)
