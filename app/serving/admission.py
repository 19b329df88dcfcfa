"""Which requests may wait for the engine: limits on each, and on all of them together.

A request that is admitted waits for about the limit in seconds at most. A request that would wait
longer is refused at once, with the seconds after which to come back. A large request counts with
one slice (`app.serving.throughput`), which is how long others wait for it at a time.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.serving.throughput import SLICE_SECONDS, Throughput
from core.exceptions import Invalid, TooLarge, Unavailable

MAX_RETRY_AFTER_SECONDS = 60
MAX_QUEUED_REQUESTS = 4096  # small ones cost memory and turns of the event loop, not work


@dataclass(frozen=True)
class Limits:
    """The operator's bounds; work is rows × samples."""

    max_samples: int
    max_work: int

    def check_samples(self, samples: int) -> None:
        """Raise `Invalid` with more than `max_samples` samples."""
        if samples > self.max_samples:
            limit = f"must be at most {self.max_samples} (CREDENCE_MAX_SAMPLES)"
            raise Invalid([("/samples", limit)])

    def work(self, rows: int, samples: int, per_sample: int = 1, unit: str = "values") -> int:
        """The work of a request.

        Args:
            per_sample: values, or steps, that each sample of a row takes.

        Raises:
            Invalid: with more than `max_samples` samples.
            TooLarge: with more than `max_work` of work.
        """
        self.check_samples(samples)
        work = rows * samples * per_sample
        if work > self.max_work:
            product = f"{rows} rows × {samples} samples"
            if per_sample > 1:
                product += f" × {per_sample} {unit} each"
            raise TooLarge(
                f"{product} is more than {self.max_work} (CREDENCE_MAX_WORK): "
                "split the rows over several requests, or draw fewer samples"
            )
        return work


_Kind = tuple[Hashable, int]  # a speed, and samples


class _Turns:
    """How long a small request waits for those before it: for all small ones, and for a slice of
    each large one. Kept up to date kind by kind, since every request reads it.
    """

    def __init__(self, throughput: Throughput) -> None:
        self._throughput = throughput
        self._rows: Counter[_Kind | None] = Counter()  # None: large requests
        self._seconds: dict[_Kind | None, float] = {}
        self.seconds = 0.0

    def count(self, kind: _Kind | None, rows: int) -> None:
        """So many rows more, or fewer; of large ones, requests."""
        self._rows[kind] += rows
        seconds = self._of(kind)
        self.seconds += seconds - self._seconds.pop(kind, 0.0)
        if self._rows[kind]:
            self._seconds[kind] = seconds
        else:
            del self._rows[kind]
        if not self._rows:
            self.seconds = 0.0  # what rounding has left

    def _of(self, kind: _Kind | None) -> float:
        rows = self._rows[kind]
        if not rows or kind is None:
            return rows * SLICE_SECONDS
        speed, samples = kind
        return self._throughput.seconds(speed, rows, samples)


class Admission:
    """Counts the work that waits or runs, and when it will be done. Belongs to the event loop."""

    def __init__(
        self, max_queued_work: int, throughput: Throughput, max_seconds: float = math.inf
    ) -> None:
        self._max_queued_work = max_queued_work
        self._max_seconds = max_seconds
        self._throughput = throughput
        self._queued: Counter[_Kind] = Counter()  # rows by speed and samples
        self._turns = _Turns(throughput)
        self._queued_work = 0
        self._queued_requests = 0

    @property
    def queued_work(self) -> int:
        """Rows × samples that wait or run."""
        return self._queued_work

    @property
    def queued_requests(self) -> int:
        """Requests that wait or run."""
        return self._queued_requests

    @contextmanager
    def entered(
        self, speed: Hashable, rows: int, samples: int, work: int, requests: int = 1
    ) -> Iterator[None]:
        """Count a request while it is answered; `speed` is its key for `Throughput`.

        `requests` is 0 for a request that entered before and turned out to be more work.

        Raises:
            Unavailable: if too much waits already, with the time in which it will be done.
        """
        self._check(work, requests)
        is_large = self._throughput.seconds(speed, rows, samples) > SLICE_SECONDS
        turn = (None, 1) if is_large else ((speed, samples), rows)
        self._count(speed, samples, rows, work, requests)
        self._turns.count(*turn)
        try:
            yield
        finally:
            self._count(speed, samples, -rows, -work, -requests)
            self._turns.count(turn[0], -turn[1])

    def drain_seconds(self) -> int:
        """Until all that waits is done, in whole seconds from 1 to `MAX_RETRY_AFTER_SECONDS`."""
        seconds = sum(
            self._throughput.seconds(speed, rows, samples)
            for (speed, samples), rows in self._queued.items()
        )
        return _whole(seconds)

    def _check(self, work: int, requests: int) -> None:
        if self._queued_work and self._queued_work + work > self._max_queued_work:
            raise Unavailable(
                f"{self._queued_work} rows × samples wait already, "
                f"{self._max_queued_work} may (CREDENCE_MAX_QUEUED_WORK)",
                self.drain_seconds(),
            )
        if requests and self._turns.seconds > self._max_seconds:
            raise Unavailable(
                f"what waits takes {self._turns.seconds:.1f} s already, "
                f"{self._max_seconds:g} may (CREDENCE_MAX_QUEUED_SECONDS)",
                _whole(self._turns.seconds),
            )
        if self._queued_requests + requests > MAX_QUEUED_REQUESTS:
            message = f"{self._queued_requests} requests wait already"
            raise Unavailable(message, self.drain_seconds())

    def _count(self, speed: Hashable, samples: int, rows: int, work: int, requests: int) -> None:
        self._queued_work += work
        self._queued_requests += requests
        self._queued[speed, samples] += rows
        if not self._queued[speed, samples]:
            del self._queued[speed, samples]


def _whole(seconds: float) -> int:
    return min(max(math.ceil(seconds), 1), MAX_RETRY_AFTER_SECONDS)
