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
Question = tuple[View, str, Reference]
Lookup = Callable[[View, str, Reference], Version]

FRESH_SECONDS = 0.25  # then the registry is asked again, and nobody waits for it
STALE_SECONDS = 1.0  # then whoever asks waits: longer no other process's change goes unseen
TIMEOUT_SECONDS = 1.0
PATIENCE_SECONDS = 2.0  # between two questions to a database that did not answer
MAX_LOOKUPS = 8  # threads that may hang in a database that neither answers nor refuses

ALL = View()  # whoever sees everything gets the same answers

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class _Known:
    version: Version
    epoch: int
    asked_at: float


class Resolver:
    """Asks the registry, once for all who ask at once; belongs to the event loop.

    An answer holds for `STALE_SECONDS` at most, and never beyond a `forget`.
    """

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._known: dict[Question, _Known] = {}
        self._asking: dict[Question, asyncio.Task[Version]] = {}
        self._epoch = 0
        self._is_away = False
        self._ask_again_at = 0.0
        self._threads = anyio.CapacityLimiter(MAX_LOOKUPS)

    async def resolve(self, view: View, model: str, reference: Reference) -> Version:
        """The version that a number, an alias or None (the newest) means to who has this view.

        Raises:
            NotFound: there is none that is seen.
            Unavailable: the database is away, and nobody asked for this before.
        """
        question = (ALL if view.sees_all else view, model, reference)
        known = self._known.get(question)
        if known is not None and self._holds(question, known):
            return known.version
        if known is not None and self._is_away:
            self._ask_in_background(question)
            return known.version
        try:
            return await asyncio.shield(self._ask(question))
        except Unavailable:
            if known is None:
                raise
            log.warning("the database is away: last known versions answer", model=model)
            return known.version

    def forget(self) -> None:
        """Ask anew from now on: somebody is being told what may have changed."""
        self._epoch += 1
        self._asking.clear()  # who waits gets an answer, who comes now another

    def _holds(self, question: Question, known: _Known) -> bool:
        age = monotonic() - known.asked_at
        if known.epoch != self._epoch or age >= STALE_SECONDS:
            return False
        if age >= FRESH_SECONDS:
            self._ask(question)
        return True

    def _ask(self, question: Question) -> "asyncio.Task[Version]":
        """The lookup that all who ask this now wait for."""
        if question not in self._asking:
            task = asyncio.create_task(self._look_up(question, self._epoch))
            self._asking[question] = task
            task.add_done_callback(lambda done: self._finish(question, done))
        return self._asking[question]

    def _finish(self, question: Question, task: "asyncio.Task[Version]") -> None:
        if self._asking.get(question) is task:
            del self._asking[question]
        if not task.cancelled():
            task.exception()  # seen, even if all who waited went away

    async def _look_up(self, question: Question, epoch: int) -> Version:
        asked_at = monotonic()
        lookup = to_thread.run_sync(
            self._lookup, *question, abandon_on_cancel=True, limiter=self._threads
        )
        try:
            version = await asyncio.wait_for(lookup, TIMEOUT_SECONDS)
        except NotFound:
            self._is_away = False
            self._forget(*question[:2])
            raise
        except TimeoutError:
            self._is_away = True
            raise Unavailable("the database does not answer in time") from None
        except Unavailable:
            self._is_away = True
            raise
        self._is_away = False
        view, model, _ = question
        for key in (question, (view, model, version.version)):
            self._remember(key, _Known(version, epoch, asked_at))
        return version

    def _forget(self, view: View, model: str) -> None:
        """What is gone, or no longer shared, does not stand in; nor what else was known of it."""
        for question in [known for known in self._known if known[:2] == (view, model)]:
            del self._known[question]

    def _remember(self, question: Question, known: _Known) -> None:
        """Unless what is known was asked for later: answers may overtake each other."""
        before = self._known.get(question)
        if before is None or before.asked_at <= known.asked_at:
            self._known[question] = known

    def _ask_in_background(self, question: Question) -> None:
        """See whether the database is back, without a request that waits for it."""
        if monotonic() >= self._ask_again_at:
            self._ask_again_at = monotonic() + PATIENCE_SECONDS
            self._ask(question)
