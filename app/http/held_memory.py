"""Memory that one request holds: its body while it is decoded, its response until it is sent.

Small requests are not counted one by one: `MAX_QUEUED_REQUESTS` of them fit beside the budget.
"""

from collections.abc import Hashable

from fastapi import Request
from starlette.types import Scope

from core.process.memory_budget import MemoryBudget, Reservation

SMALL_BYTES = 64 * 2**10
OF_BODY = 12  # bytes of memory for each byte of a body: parsed JSON takes up to ten times as much
OF_RESPONSE = 3  # the text, what it is made of, and what waits in the socket


class HeldMemory:
    """The reservations of one request; `release` gives all of them back."""

    def __init__(self, budget: MemoryBudget, caller: Hashable = None) -> None:
        """`caller` is with whom the budget is shared."""
        self._budget, self._caller = budget, caller
        self._reserved: list[Reservation] = []
        self._body = SMALL_BYTES

    def body(self, num_bytes: int, declared: int) -> None:
        """Hold a body of which so many bytes have come.

        Args:
            declared: the bytes that the header tells, or 0.

        Raises:
            Unavailable: too much memory is reserved by others.
            TooLarge: it would never fit.
        """
        if num_bytes > self._body:
            self.rows(max(declared, 2 * num_bytes))

    def rows(self, num_bytes: int) -> None:
        """Hold rows that have so many bytes once they are decoded. Raises as `body` does."""
        if num_bytes > self._body:
            self._reserve("bodies", OF_BODY * (num_bytes - self._body))
            self._body = num_bytes

    def stored(self, num_bytes: int) -> None:
        """Hold so many bytes of stored JSON, before they are read. Raises as `body` does."""
        if num_bytes > SMALL_BYTES:
            self._reserve("responses", OF_BODY * num_bytes)

    def response(self, num_bytes: int) -> None:
        """Hold a response of so many bytes. Raises as `body` does."""
        if num_bytes > SMALL_BYTES:
            self._reserve("responses", OF_RESPONSE * num_bytes)

    def release(self) -> None:
        while self._reserved:
            self._reserved.pop().release()

    def _reserve(self, use: str, num_bytes: int) -> None:
        self._budget.check(num_bytes)
        self._reserved.append(self._budget.reserve(use, num_bytes, caller=self._caller))


def share_of(request: Request) -> Hashable:
    """Whose part of what callers share a request takes: an owner's, or an address's without one."""
    caller = getattr(request.state, "caller", None)  # who signs in is nobody yet
    share = None if caller is None else caller.share
    return share or (request.client.host if request.client else None)


def held_by(request: Request) -> HeldMemory:
    """The memory of a request."""
    held = getattr(request.state, "held_memory", None)
    if held is None:
        budget = request.app.state.services.context.memory
        held = request.state.held_memory = HeldMemory(budget, share_of(request))
    assert isinstance(held, HeldMemory)
    return held


def release_memory(scope: Scope) -> None:
    """Give back what a request held, once its response is sent."""
    held = scope.get("state", {}).get("held_memory")
    if held is not None:
        held.release()
