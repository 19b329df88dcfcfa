"""Which version a name means now. The last answer stands in while the database is away."""

import asyncio
import contextlib
from collections.abc import Callable
from time import monotonic

import anyio
import structlog
from anyio import to_thread

from core.exceptions import NotFound, Unavailable
from core.registry import Version

Reference = int | str | None
Lookup = Callable[[str, Reference], Version]

TIMEOUT_SECONDS = 1.0
PATIENCE_SECONDS = 2.0  # between two questions to a database that did not answer
MAX_LOOKUPS = 8  # threads that may hang in a database that neither answers nor refuses

log = structlog.stdlib.get_logger(__name__)


class Resolver:
    """Asks the registry each time, so that an alias moves at once; belongs to the event loop."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self._known: dict[tuple[str, Reference], Version] = {}
        self._is_away = False
        self._ask_again_at = 0.0
        self._probe: asyncio.Task[None] | None = None
        self._threads = anyio.CapacityLimiter(MAX_LOOKUPS)

    async def resolve(self, model: str, reference: Reference) -> Version:
        """The version that a number, an alias or None (the newest) means.

        Raises:
            NotFound: there is none.
            Unavailable: the database is away, and nobody asked for this before.
        """
        known = self._known.get((model, reference))
        if known is not None and self._is_away:
            self._ask_in_background(model, reference)
            return known
        try:
            return await self._ask(model, reference)
        except Unavailable:
            self._is_away = True
            if known is None:
                raise
            log.warning("the database is away: last known versions answer", model=model)
            return known

    async def _ask(self, model: str, reference: Reference) -> Version:
        question = to_thread.run_sync(
            self._lookup,
            model,
            reference,
            abandon_on_cancel=True,
            limiter=self._threads,
        )
        try:
            version = await asyncio.wait_for(question, TIMEOUT_SECONDS)
        except NotFound:
            self._is_away = False
            self._known.pop((model, reference), None)
            raise
        except TimeoutError:
            raise Unavailable("the database does not answer in time") from None
        self._is_away = False
        self._known[model, reference] = self._known[model, version.version] = version
        return version

    def _ask_in_background(self, model: str, reference: Reference) -> None:
        """See whether the database is back, without a request that waits for it."""
        is_asking = self._probe is not None and not self._probe.done()
        if not is_asking and monotonic() >= self._ask_again_at:
            self._ask_again_at = monotonic() + PATIENCE_SECONDS
            self._probe = asyncio.create_task(self._try(model, reference))

    async def _try(self, model: str, reference: Reference) -> None:
        with contextlib.suppress(NotFound, Unavailable):
            await self._ask(model, reference)
