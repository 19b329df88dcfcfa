"""One budget of memory for all that uploads, imports, loaded models and results hold together.

Whoever will hold much says so before, and gets all of it or waits. Nobody waits while holding a
part, and those who wait are served in their order, each for a limited time: no deadlock, and a
large request is not passed by small ones for ever.

Callers share the budget (`SharedBound`), with the part that gives a caller alone all but what is
kept for what lasts. Of those who wait, the one who holds least is first.
"""

from collections import Counter, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from threading import Condition
from types import TracebackType

from core.exceptions import TooLarge, Unavailable
from core.process.shared_bound import SharedBound

WAIT_SECONDS = 30.0  # a large upload is read in about this time
RETRY_AFTER_SECONDS = 10
LASTING_SHARE = 4  # of the budget, 1/4 is for what is held without an end, as loaded models are


class Reservation:
    """Bytes that are held until `release`, or until the end of a `with` block."""

    def __init__(
        self, budget: "MemoryBudget", use: str, num_bytes: int, caller: Hashable = None
    ) -> None:
        self._budget, self._use, self._caller = budget, use, caller
        self.num_bytes = num_bytes

    def resize(self, num_bytes: int) -> None:
        """Hold so many bytes from now on: more than before, too, if that is what is held."""
        self._budget.change(self._use, num_bytes - self.num_bytes, self._caller)
        self.num_bytes = num_bytes

    def release(self) -> None:
        """Give the bytes back. A second call does nothing."""
        self.resize(0)

    def __enter__(self) -> "Reservation":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class MemoryBudget:
    """Counts reserved bytes by use. Any thread may use it.

    Args:
        total: bytes, beside those that the process holds without any request.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._changed = Condition()
        self._reserved: Counter[str] = Counter()
        self._shared = SharedBound(total, LASTING_SHARE - 1)
        self._waiting: deque[_Turn] = deque()

    @property
    def lasting(self) -> int:
        """The bytes that may be held without an end."""
        return self.total // LASTING_SHARE

    @property
    def largest(self) -> int:
        """The bytes that come free in the end: a larger reservation might wait for ever."""
        return (LASTING_SHARE - 1) * self.total // LASTING_SHARE

    def check(
        self,
        num_bytes: int,
        taker: str = "this takes",
        advice: str = "send fewer rows, or ask for less",
    ) -> None:
        """
        Args:
            taker: what takes the bytes, with its verb.
            advice: what the caller can do instead.

        Raises:
            TooLarge: one request would never get so many bytes.
        """
        if num_bytes > self.largest:
            raise TooLarge(
                f"{taker} {num_bytes} bytes of memory, and one request may take {self.largest} "
                f"(CREDENCE_MEMORY_BYTES): {advice}"
            )

    def reserved(self) -> Mapping[str, int]:
        """The reserved bytes by use, of all uses so far."""
        with self._changed:
            return dict(self._reserved)

    def reserve(
        self, use: str, num_bytes: int, wait_seconds: float = 0.0, caller: Hashable = None
    ) -> Reservation:
        """Reserve bytes.

        Args:
            use: what for, such as `uploads`; a label of the metric.
            wait_seconds: how long to wait for others. 0 does not queue.
            caller: with whom the budget is shared; None for what is nobody's, as loaded models.

        Raises:
            Unavailable: they are not free, or more than the caller's part, or not in time.
        """
        with self._changed:
            if wait_seconds > 0:
                self._wait(num_bytes, wait_seconds, caller)
            if not self._fits(num_bytes, caller):
                raise Unavailable(self._refusal(num_bytes, caller), RETRY_AFTER_SECONDS)
            self._count(use, num_bytes, caller)
        return Reservation(self, use, num_bytes, caller)

    def change(self, use: str, num_bytes: int, caller: Hashable = None) -> None:
        """Add bytes to a use, or take them off."""
        with self._changed:
            self._count(use, num_bytes, caller)
            self._changed.notify_all()

    def _count(self, use: str, num_bytes: int, caller: Hashable) -> None:
        self._reserved[use] += num_bytes
        if caller is not None:
            self._shared.change(caller, num_bytes)

    def _fits(self, num_bytes: int, caller: Hashable) -> bool:
        has_room = caller is None or self._shared.has_room(caller, num_bytes)
        return has_room and num_bytes <= self._free()

    def _free(self) -> int:
        return self.total - self._reserved.total()

    def _wait(self, num_bytes: int, seconds: float, caller: Hashable) -> None:
        """Return when it is this thread's turn and the bytes are free, or when the time is over."""
        turn = _Turn(caller)
        self._waiting.append(turn)
        try:
            self._changed.wait_for(
                lambda: self._first() is turn and self._fits(num_bytes, caller), seconds
            )
        finally:
            self._waiting.remove(turn)
            self._changed.notify_all()

    def _first(self) -> "_Turn":
        """Who waits and holds least; of several, the one who came first."""
        return min(self._waiting, key=lambda turn: self._shared.of(turn.caller))

    def _refusal(self, num_bytes: int, caller: Hashable) -> str:
        return (
            f"this needs {num_bytes} bytes of memory, and {max(0, self._free())} of {self.total} "
            f"are free (CREDENCE_MEMORY_BYTES), which callers share; your requests hold "
            f"{self._shared.of(caller)}: try again later"
        )


@dataclass(eq=False, frozen=True)
class _Turn:
    """One that waits."""

    caller: Hashable
