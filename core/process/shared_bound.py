"""A bound that callers share: nobody can take all of it, and a caller alone gets its whole part.

Dynamic thresholds (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6, 1998): a caller may
hold `part` times what stays free. With a part of 1, a caller alone may hold a half of the total,
two callers a third each: there is always room for one who holds nothing. With a part of 3 these are
three quarters, and three sevenths. There is nothing to set for the number of callers, and nothing
is kept for those who ask for nothing.

`app.serving.admission` bounds what waits for the engine in the same way, in several units at once.
"""

from collections import Counter
from collections.abc import Hashable


class SharedBound:
    """What each caller holds. Not for several threads at once.

    Args:
        total: what all callers may hold together.
        part: see above.
    """

    def __init__(self, total: int, part: int = 1) -> None:
        self.total, self._part = total, part
        self._held: Counter[Hashable] = Counter()
        self.held = 0

    def of(self, caller: Hashable) -> int:
        """What a caller holds."""
        return self._held.get(caller, 0)

    def has_room(self, caller: Hashable, more: int = 1) -> bool:
        """Whether a caller may hold `more` than it does."""
        return self.of(caller) + more <= self._part * (self.total - self.held - more)

    def change(self, caller: Hashable, more: int) -> None:
        """Count what a caller takes, or gives back if negative."""
        self.held += more
        self._held[caller] += more
        if not self._held[caller]:
            del self._held[caller]
