"""How many predictions may be under way: as many as are answered within the time that may wait.

The engine's queue is bounded by `app.serving.admission`. But where a model is small, decoding and
encoding take longer than computing, and requests wait for their turn on the event loop, where none
of them can be refused before it has waited. So they are counted as they arrive.
"""

FEW = 64  # are always let in: their time says nothing yet
MOST = 512  # never more: batches gain nothing beyond some dozens, and the pace is of the past
WINDOW_SECONDS, WINDOW_ANSWERS = 0.25, 32  # answers come in bursts, one per turn of the loop


class Crowd:
    """Counts predictions from their arrival to their answer, and how quickly they leave."""

    def __init__(self, max_seconds: float) -> None:
        self._max_seconds = max_seconds
        self._present = 0
        self._seconds_each = 0.0
        self._left, self._window = 0, 0.0

    @property
    def wait_seconds(self) -> float:
        """Until the last of those who are here has its answer, at the pace of the last window."""
        return self._present * self._seconds_each

    @property
    def is_full(self) -> bool:
        """Whether another one would wait for too long."""
        is_slow = self._present >= FEW and self.wait_seconds > self._max_seconds
        return is_slow or self._present >= MOST

    def enter(self, now: float) -> None:
        """One more; a pace is that of times in which there is always somebody."""
        if not self._present:
            self._left, self._window = 0, now
        self._present += 1

    def leave(self, now: float) -> None:
        """One is answered, or has gone."""
        self._present -= 1
        self._left += 1
        if now - self._window >= WINDOW_SECONDS and self._left >= WINDOW_ANSWERS:
            self._seconds_each = (now - self._window) / self._left
            self._left, self._window = 0, now
