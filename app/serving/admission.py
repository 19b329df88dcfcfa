"""What may wait for the engine: limits on one request, and on all of them together."""

import math
import threading
from dataclasses import dataclass

from core.exceptions import Invalid, TooLarge, Unavailable

MEMORY_SECONDS = 10.0  # the estimate of throughput follows about this much of computing
MAX_RETRY_AFTER_SECONDS = 60


@dataclass(frozen=True)
class Limits:
    """The operator's bounds; work is rows × samples."""

    max_samples: int
    max_work: int

    def check(self, rows: int, samples: int, values_per_sample: int = 1) -> int:
        """The work of a request, each sample of a row counting as many values as it returns.

        Raises:
            Invalid: with more than `max_samples` samples.
            TooLarge: with more than `max_work` of work.
        """
        if samples > self.max_samples:
            limit = f"must be at most {self.max_samples} (CREDENCE_MAX_SAMPLES)"
            raise Invalid([("/samples", limit)])
        work = rows * samples * values_per_sample
        if work > self.max_work:
            product = f"{rows} rows × {samples} samples"
            if values_per_sample > 1:
                product += f" × {values_per_sample} values each"
            raise TooLarge(
                f"{product} is more than {self.max_work} (CREDENCE_MAX_WORK): "
                "split the rows over several requests, or draw fewer samples"
            )
        return work


class Admission:
    """Counts the work that waits or runs, and tells when it will be done."""

    def __init__(self, max_queued_work: int) -> None:
        self._max_queued_work = max_queued_work
        self._queued_work = 0
        self._done_work = 0.0
        self._done_seconds = 0.0
        self._lock = threading.Lock()  # entered on the event loop, left on the engine's thread

    @property
    def queued_work(self) -> int:
        """Rows × samples that wait or run."""
        return self._queued_work

    def enter(self, work: int) -> None:
        """Take `work` in; `leave` must follow.

        Raises:
            Unavailable: if too much waits already, with the time in which it will be done.
        """
        with self._lock:
            if self._queued_work and self._queued_work + work > self._max_queued_work:
                raise Unavailable(
                    f"{self._queued_work} rows × samples wait already, "
                    f"{self._max_queued_work} may (CREDENCE_MAX_QUEUED_WORK)",
                    self._drain_seconds(),
                )
            self._queued_work += work

    def leave(self, work: int) -> None:
        """It was computed, failed or was given up."""
        with self._lock:
            self._queued_work -= work

    def observe(self, work: int, seconds: float) -> None:
        """Learn from a finished computation; older ones count less."""
        with self._lock:
            decay = math.exp(-seconds / MEMORY_SECONDS)
            self._done_work = decay * self._done_work + work
            self._done_seconds = decay * self._done_seconds + seconds

    def _drain_seconds(self) -> int:
        """Queued work ÷ throughput, in whole seconds from 1 to `MAX_RETRY_AFTER_SECONDS`."""
        if not self._done_work:
            return 1
        seconds = self._queued_work * self._done_seconds / self._done_work
        return min(max(math.ceil(seconds), 1), MAX_RETRY_AFTER_SECONDS)
