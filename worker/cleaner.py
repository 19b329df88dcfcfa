"""Removes what nobody refers to: what crashes have left in the store and on this disk, and rows
whose time is up.
"""

from datetime import UTC, datetime, timedelta

import structlog

from core.context import Context
from core.process.periodic import Periodic
from core.process.watch import Watch
from core.storage.orphans import Orphans

log = structlog.get_logger()

CLEAN_SECONDS = 600.0
ARRIVAL_SECONDS = 3600.0  # within which a row follows its file: a transaction, in truth


def forget(context: Context) -> None:
    """Remove the rows whose time is up: stored predictions, first answers, lines of the audit."""
    settings, now = context.settings, datetime.now(UTC)
    context.stored_predictions.sweep(now - timedelta(days=settings.stored_days))
    context.replies.sweep(now - timedelta(hours=settings.idempotency_hours))
    context.audit.sweep(now - timedelta(days=settings.audit_days))


class Cleaner:
    """A thread of its own: a store that hangs must not keep the worker's other threads waiting."""

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
        """Look once, and remove what is found."""
        forget(self._context)
        self._context.scratch.remove_leftovers()
        self._context.store.remove_leftovers()
        for key in self._orphans.find():
            self._remove(key)
        for key in self._rowless.unchanged(dict.fromkeys(self._orphans.find_rowless())):
            self._remove(key)

    def _remove(self, key: str) -> None:
        log.info("removing what nobody refers to", key=key)
        self._context.store.delete(key)
