"""Limits on each prediction request, and on all requests that wait for the engine.

An admitted request waits for about `CREDENCE_MAX_QUEUED_SECONDS` at most. A request that would wait
longer is refused at once, with the seconds after which to retry. A large request counts as one
slice (`app.serving.throughput`), because other requests run between its slices.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.serving.throughput import SLICE_SECONDS, Throughput
from core.exceptions import Invalid, TooLarge, Unavailable
from models.prediction.options import DEFAULT_SAMPLES

MAX_RETRY_AFTER_SECONDS = 60
MAX_QUEUED_REQUESTS = 4096  # small ones need little work, but memory and time of the event loop


@dataclass(frozen=True)
class Limits:
    """The operator's limits. Work is rows × samples."""

    max_samples: int
    max_work: int

    def check_samples(self, samples: int | None) -> None:
        """Raise `Invalid` if there are more than `max_samples` samples.

        Without a number a model may draw `DEFAULT_SAMPLES`.
        """
        if (samples or DEFAULT_SAMPLES) > self.max_samples:
            limit = f"must be at most {self.max_samples} (CREDENCE_MAX_SAMPLES)"
            raise Invalid([("/samples", limit)])

    def work(self, rows: int, samples: int, per_sample: int = 1, unit: str = "values") -> int:
        """The work of a request.

        Args:
            per_sample: values or steps (`unit`) of each sample of a row.

        Raises:
            Invalid: there are more than `max_samples` samples.
            TooLarge: the work is more than `max_work`.
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


_Kind = tuple[Hashable, int]  # the key for `Throughput`, and the number of samples


class _Wait:
    """The seconds that a small request waits: for all small requests before it, and for one slice
    of each large one. The sum is updated kind by kind, because every request reads it.
    """

    def __init__(self, throughput: Throughput) -> None:
        self._throughput = throughput
        self._rows: Counter[_Kind | None] = Counter()  # None: large requests
        self._seconds: dict[_Kind | None, float] = {}
        self.seconds = 0.0

    def count(self, kind: _Kind | None, rows: int) -> None:
        """Add rows (or remove them, if negative) of a kind.

        Args:
            kind: None for large requests, of which `rows` counts requests.
        """
        self._rows[kind] += rows
        seconds = self._of(kind)
        self.seconds += seconds - self._seconds.pop(kind, 0.0)
        if self._rows[kind]:
            self._seconds[kind] = seconds
        else:
            del self._rows[kind]
        if not self._rows:
            self.seconds = 0.0  # removes the rounding errors

    def _of(self, kind: _Kind | None) -> float:
        rows = self._rows[kind]
        if not rows or kind is None:
            return rows * SLICE_SECONDS
        speed, samples = kind
        return self._throughput.seconds(speed, rows, samples)


class Admission:
    """Counts the work that waits or runs, and estimates its time. For use on the event loop."""

    def __init__(
        self, max_queued_work: int, throughput: Throughput, max_seconds: float = math.inf
    ) -> None:
        self._max_queued_work = max_queued_work
        self._max_seconds = max_seconds
        self._throughput = throughput
        self._queued: Counter[_Kind] = Counter()  # rows by speed and samples
        self._wait = _Wait(throughput)
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
        """Count a request while the block runs.

        Args:
            speed: the key of the request for `Throughput`.
            requests: 0 to add work to a request that was counted before.

        Raises:
            Unavailable: too much work waits; the error has the seconds until it will be done.
        """
        self._check(work, requests)
        is_large = self._throughput.seconds(speed, rows, samples) > SLICE_SECONDS
        kind, count = (None, 1) if is_large else ((speed, samples), rows)
        self._count(speed, samples, rows, work, requests)
        self._wait.count(kind, count)
        try:
            yield
        finally:
            self._count(speed, samples, -rows, -work, -requests)
            self._wait.count(kind, -count)

    def drain_seconds(self) -> int:
        """Whole seconds until the work is done, from 1 to `MAX_RETRY_AFTER_SECONDS`."""
        seconds = sum(
            self._throughput.seconds(speed, rows, samples)
            for (speed, samples), rows in self._queued.items()
        )
        return _whole(seconds)

    def _check(self, work: int, requests: int) -> None:
        if self._queued_work and self._queued_work + work > self._max_queued_work:
            raise Unavailable(
                f"{self._queued_work} rows × samples wait already; "
                f"at most {self._max_queued_work} may (CREDENCE_MAX_QUEUED_WORK)",
                self.drain_seconds(),
            )
        if requests and self._wait.seconds > self._max_seconds:
            raise Unavailable(
                f"the waiting requests take {self._wait.seconds:.1f} s; "
                f"at most {self._max_seconds:g} s may wait (CREDENCE_MAX_QUEUED_SECONDS)",
                _whole(self._wait.seconds),
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
