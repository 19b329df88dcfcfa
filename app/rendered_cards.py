"""Model cards as bytes, so that a large one is parsed once and not by every request."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable

from anyio import CapacityLimiter, to_thread

MAX_BYTES = 2**24
MAX_THREADS = 2  # that render: a large card takes the interpreter for a while

Key = tuple[str, Hashable, Hashable]  # an artifact, and what else the card is made of


class RenderedCards:
    """The cards that were asked for last. For use on the event loop."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._known: OrderedDict[Key, bytes] = OrderedDict()
        self._threads = CapacityLimiter(MAX_THREADS)

    async def get(self, key: Key, render: Callable[[], bytes]) -> bytes:
        """The bytes that `render` returns for this key, now or at an earlier call.

        Args:
            key: of everything that the card is made of.
        """
        async with self._threads:
            known = self._known.pop(key, None)
            card = await to_thread.run_sync(render) if known is None else known
        self._keep(key, card)
        return card

    def artifacts(self) -> Collection[str]:
        """The artifacts whose cards are known."""
        return {artifact for artifact, *_ in self._known}

    def forget(self, artifacts: Collection[str]) -> None:
        """Drop the cards of these artifacts."""
        for key in [key for key in self._known if key[0] in artifacts]:
            del self._known[key]

    def _keep(self, key: Key, card: bytes) -> None:
        self._known[key] = card
        while sum(map(len, self._known.values())) > self._max_bytes:
            self._known.popitem(last=False)
