"""Looks up the version of a name. The last known one is used while the database is away."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import monotonic

import anyio
import structlog
from anyio import to_thread

from core.access.callers import View
from core.bounded import keep
from core.exceptions import NotFound, Unavailable
from core.registry.registry import Version

Reference = int | str | None
Key = tuple[View, str, Reference]
Lookup = Callable[[View, str, Reference], Version]

FRESH_SECONDS = 0.25  # an older result is read again in the background
STALE_SECONDS = 1.0  # with an older result, requests wait for a new one: limits what they may miss
TIMEOUT_SECONDS = 1.0  # after which the last known result is used
FIRST_TIMEOUT_SECONDS = 5.0  # without one, waiting is better than an error
RETRY_SECONDS = 2.0  # between two background lookups while the database is away
MAX_KNOWN = 1024  # results; each holds a version's description
MAX_LOOKUPS = 8  # threads that may wait for a database that hangs

ALL = View()  # shared by all callers who see everything

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class _Known:
    version: Version
    epoch: int
    read_at: float


class VersionLookup:
    """Reads the registry once for concurrent requests. For use on the event loop.

    A result is used for at most `STALE_SECONDS`, and not after a `clear`. While the database is
    away, it is used without a limit.
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
        """The version with a number or alias, or the newest one for None.

        Raises:
            NotFound: there is none, or the view does not include it.
            Unavailable: the database is away, and the version is not known yet.
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
            log.warning("the database is away: using the last known versions", model=model)
            return known.version

    def clear(self) -> None:
        """Use no earlier result from now on, because a client knows of a change."""
        self._epoch += 1
        self._lookups.clear()  # requests that wait get their results, new ones start new lookups

    def artifacts(self) -> Collection[str]:
        """The artifacts that are results."""
        return {known.version.artifact_key for known in self._known.values()}

    def forget(self, artifact_keys: Collection[str]) -> None:
        """Drop the results that are one of these artifacts."""
        for key, known in list(self._known.items()):
            if known.version.artifact_key in artifact_keys:
                del self._known[key]

    def _holds(self, key: Key, known: _Known) -> bool:
        age = monotonic() - known.read_at
        if known.epoch != self._epoch or age >= STALE_SECONDS:
            return False
        if age >= FRESH_SECONDS:
            self._task(key)
        return True

    def _task(self, key: Key) -> "asyncio.Task[Version]":
        """The running lookup of a key, or a new one."""
        if key not in self._lookups:
            task = asyncio.create_task(self._look_up(key, self._epoch))
            self._lookups[key] = task
            task.add_done_callback(lambda done: self._finish(key, done))
        return self._lookups[key]

    def _finish(self, key: Key, task: "asyncio.Task[Version]") -> None:
        if self._lookups.get(key) is task:
            del self._lookups[key]
        if not task.cancelled():
            task.exception()  # marks it as retrieved, even if no request waits

    async def _look_up(self, key: Key, epoch: int) -> Version:
        read_at = monotonic()
        lookup = to_thread.run_sync(
            self._lookup, *key, abandon_on_cancel=True, limiter=self._threads
        )
        seconds = TIMEOUT_SECONDS if key in self._known else FIRST_TIMEOUT_SECONDS
        try:
            version = await asyncio.wait_for(lookup, seconds)
        except NotFound:
            self._is_away = False
            self._drop(*key[:2])
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
            self._remember(known, _Known(version, epoch, read_at))
        return version

    def _drop(self, view: View, model: str) -> None:
        """Delete all results of a model of which a version is deleted or no longer shared."""
        for key in [known for known in self._known if known[:2] == (view, model)]:
            del self._known[key]

    def _remember(self, key: Key, known: _Known) -> None:
        """Store a result, unless that of a later lookup is already there."""
        before = self._known.get(key)
        if before is None or (before.epoch, before.read_at) <= (known.epoch, known.read_at):
            keep(self._known, key, known, MAX_KNOWN)

    def _refresh_in_background(self, key: Key) -> None:
        """Try the database again without making a request wait."""
        if monotonic() >= self._retry_at:
            self._retry_at = monotonic() + RETRY_SECONDS
            self._task(key)
