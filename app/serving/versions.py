"""Which version a name means now. The last answer stands in while the database is away."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import anyio
import structlog
from anyio import to_thread

from core.access.callers import View
from core.exceptions import NotFound, Unavailable
from core.registry.registry import Version

Reference = int | str | None
Key = tuple[View, str, Reference]
Lookup = Callable[[View, str, Reference], Version]

FRESH_SECONDS = 0.25  # then the registry is read again, and nobody waits for it
STALE_SECONDS = 1.0  # then requests wait for it: no change by another process is missed for longer
TIMEOUT_SECONDS = 1.0
PATIENCE_SECONDS = 2.0  # between two keys to a database that did not answer
MAX_LOOKUPS = 8  # threads that may hang in a database that neither answers nor refuses

ALL = View()  # whoever sees everything gets the same answers

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class _Known:
    version: Version
    epoch: int
    asked_at: float


class VersionLookup:
    """Reads the registry, once for all requests of a moment. Belongs to the event loop.

    An answer holds for `STALE_SECONDS` at most, and never beyond a `clear`.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._known: dict[Key, _Known] = {}
        self._lookups: dict[Key, asyncio.Task[Version]] = {}
        self._epoch = 0
        self._is_away = False
        self._retry_at = 0.0
        self._threads = anyio.CapacityLimiter(MAX_LOOKUPS)

    async def find(self, view: View, model: str, reference: Reference) -> Version:
        """The version that a number, an alias or None (the newest) means to who has this view.

        Raises:
            NotFound: there is none that is seen.
            Unavailable: the database is away, and this was never read before.
        """
        key = (ALL if view.sees_all else view, model, reference)
        known = self._known.get(key)
        if known is not None and self._holds(key, known):
            return known.version
        if known is not None and self._is_away:
            self._refresh_in_background(key)
            return known.version
        try:
            return await asyncio.shield(self._task(key))
        except Unavailable:
            if known is None:
                raise
            log.warning("the database is away: last known versions answer", model=model)
            return known.version

    def clear(self) -> None:
        """Read again from now on: a change was just confirmed to a client."""
        self._epoch += 1
        self._lookups.clear()  # who waits gets an answer, who comes now another

    def _holds(self, key: Key, known: _Known) -> bool:
        age = monotonic() - known.asked_at
        if known.epoch != self._epoch or age >= STALE_SECONDS:
            return False
        if age >= FRESH_SECONDS:
            self._task(key)
        return True

    def _task(self, key: Key) -> "asyncio.Task[Version]":
        """The lookup that all who ask this now wait for."""
        if key not in self._lookups:
            task = asyncio.create_task(self._look_up(key, self._epoch))
            self._lookups[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return self._lookups[key]

    def _finish(self, key: Key, task: "asyncio.Task[Version]") -> None:
        if self._lookups.get(key) is task:
            del self._lookups[key]
        if not task.cancelled():
            task.exception()  # seen, even if all who waited went away

    async def _look_up(self, key: Key, epoch: int) -> Version:
        asked_at = monotonic()
        lookup = to_thread.run_sync(
            self._lookup, *key, abandon_on_cancel=True, limiter=self._threads
        )
        try:
            version = await asyncio.wait_for(lookup, TIMEOUT_SECONDS)
        except NotFound:
            self._is_away = False
            self._forget(*key[:2])
            raise
        except TimeoutError:
            self._is_away = True
            raise Unavailable("the database does not answer in time") from None
        except Unavailable:
            self._is_away = True
            raise
        self._is_away = False
        view, model, _ = key
        for known in (key, (view, model, version.version)):
            self._remember(known, _Known(version, epoch, asked_at))
        return version

    def _forget(self, view: View, model: str) -> None:
        """What is gone, or no longer shared, does not stand in; nor what else was known of it."""
        for key in [known for known in self._known if known[:2] == (view, model)]:
            del self._known[key]

    def _remember(self, key: Key, known: _Known) -> None:
        """Keep the result of the later lookup: results may overtake each other."""
        before = self._known.get(key)
        if before is None or before.asked_at <= known.asked_at:
            self._known[key] = known

    def _refresh_in_background(self, key: Key) -> None:
        """See whether the database is back, without a request that waits for it."""
        if monotonic() >= self._retry_at:
            self._retry_at = monotonic() + PATIENCE_SECONDS
            self._task(key)
