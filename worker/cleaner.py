"""Removes expired rows, and files that crashes left in the store and on this disk."""

from datetime import UTC, datetime, timedelta

import structlog

from core.context import Context
from core.process.periodic import Periodic
from core.process.watch import Watch
from core.storage.orphans import Orphans
from core.webhooks.webhooks import KEPT_DAYS

log = structlog.get_logger()

CLEAN_SECONDS = 600.0
ARRIVAL_SECONDS = 3600.0  # a file without a row for longer is an orphan: a row follows its file


def remove_expired(context: Context) -> None:
    """Remove expired stored predictions, responses, deliveries and entries of the audit log."""
    settings, now = context.settings, datetime.now(UTC)
    context.stored_predictions.sweep(now - timedelta(days=settings.stored_days))
    context.replies.sweep(now - timedelta(hours=settings.idempotency_hours))
    context.webhooks.sweep(now - timedelta(days=KEPT_DAYS))
    context.audit.sweep(now - timedelta(days=settings.audit_days))


class Cleaner:
    """Cleans in its own thread, so that a store that hangs delays no other work."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._orphans = Orphans(context.database, context.store)
        self._rowless: Watch[str, None] = Watch(ARRIVAL_SECONDS)
        self._periodic = Periodic("cleaning", CLEAN_SECONDS, self.clean)
        self.start = self._periodic.start

    def stop(self) -> None:
        """Start no other round. Does not wait for a running one: the next process continues it."""
        self._periodic.stop(wait=False)

    def clean(self) -> None:
        """Remove expired rows, leftovers and orphans now."""
        remove_expired(self._context)
        self._context.scratch.remove_leftovers()
        self._context.store.remove_leftovers()
        for key in self._orphans.find():
            self._remove(key)
        for key in self._rowless.unchanged(dict.fromkeys(self._orphans.find_rowless())):
            self._remove(key)

    def _remove(self, key: str) -> None:
        log.info("removing a file without a row", key=key)
        self._context.store.delete(key)
