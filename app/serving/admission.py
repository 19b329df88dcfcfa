"""Limits on each prediction request, and on all requests that wait for the engine.

A caller's requests wait for about `CREDENCE_MAX_QUEUED_SECONDS` at most, all callers' together for
twice as long. A request that would wait longer is refused at once, with the seconds after which to
retry. Small requests run between the slices of large ones (`app.serving.throughput`), so they do
not wait for all of these.
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
BYTES_OF_A_NUMBER = 20  # as text
MAX_QUEUED_REQUESTS = 4096  # small ones need little work, but memory and time of the event loop


@dataclass(frozen=True)
class Limits:
    """The operator's limits. Work is rows × samples."""

    max_samples: int
    max_work: int
    max_answer_bytes: int = 2**62
    max_whole_seconds: float = math.inf

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

    def check_whole(self, seconds: float) -> None:
        """Raise `TooLarge` if the smallest slice of a prediction would delay others for longer.

        Args:
            seconds: the estimate for the slice.
        """
        if seconds > self.max_whole_seconds:
            raise TooLarge(
                f"this is computed in one piece, which takes about {seconds:.0f} s: at most "
                f"{self.max_whole_seconds:g} s are allowed (CREDENCE_MAX_WHOLE_SECONDS). Draw "
                "fewer samples, or ask for fewer steps, texts or rows at a time"
            )

    def check_answer(self, rows: int, per_row: int) -> None:
        """Raise `TooLarge` if the answer would have more than `max_answer_bytes`.

        Args:
            per_row: numbers of each row (`models.prediction.work.values_per_row`).
        """
        size = rows * per_row * BYTES_OF_A_NUMBER
        if size > self.max_answer_bytes:
            raise TooLarge(
                f"{rows} rows × {per_row} numbers are about {size} bytes, more than "
                f"{self.max_answer_bytes} (CREDENCE_MAX_ANSWER_BYTES): split the rows over several "
                "requests, or ask for fewer draws or points"
            )


_Kind = tuple[Hashable, int]  # the key for `Throughput`, and the number of samples


class _Wait:
    """The seconds of all small requests. The sum is updated kind by kind, because every request
    reads it.
    """

    def __init__(self, throughput: Throughput) -> None:
        self._throughput = throughput
        self._rows: Counter[_Kind] = Counter()
        self._seconds: dict[_Kind, float] = {}
        self.seconds = 0.0

    def count(self, kind: _Kind, rows: int) -> None:
        """Add rows (or remove them, if negative) of a kind."""
        self._rows[kind] += rows
        seconds = self._of(kind)
        self.seconds += seconds - self._seconds.pop(kind, 0.0)
        if self._rows[kind]:
            self._seconds[kind] = seconds
        else:
            del self._rows[kind]
        if not self._rows:
            self.seconds = 0.0  # removes the rounding errors

    def _of(self, kind: _Kind) -> float:
        (speed, samples), rows = kind, self._rows[kind]
        return self._throughput.seconds(speed, rows, samples) if rows else 0.0


class _Own:
    """What one caller has waiting, or all callers together."""

    def __init__(self) -> None:
        self.work = 0
        self.requests = 0
        self.small_seconds = 0.0  # of each small request alone
        self.large_seconds = 0.0  # not computed yet

    @property
    def is_empty(self) -> bool:
        return not (self.work or self.requests)


@dataclass(eq=False)
class Ticket:
    """An admitted request. Large requests report how much of them is left."""

    own: _Own
    total: _Own
    large_seconds: float

    def progress(self, share: float) -> None:
        """Count a share of what was left as done."""
        self._reduce(share * self.large_seconds)

    def end(self) -> None:
        """Count all that was left as done."""
        self._reduce(self.large_seconds)

    def _reduce(self, seconds: float) -> None:
        self.large_seconds -= seconds
        for counted in (self.own, self.total):
            counted.large_seconds = max(0.0, counted.large_seconds - seconds)


class Admission:
    """Counts the work that waits or runs, and estimates its time. For use on the event loop.

    Each bound is a dynamic threshold (Choudhury and Hahne, IEEE/ACM Transactions on Networking 6,
    1998): what a caller has waiting may be as much as what is still free of twice the bound. So a
    caller alone may have the whole bound, two callers two thirds of it each, and there is always
    room for a caller who has nothing waiting. Small and large requests have bounds of their own.
    """

    def __init__(
        self, max_queued_work: int, throughput: Throughput, max_seconds: float = math.inf
    ) -> None:
        self._max_queued_work = max_queued_work
        self._max_seconds = max_seconds
        self._throughput = throughput
        self._queued: Counter[_Kind] = Counter()  # rows by speed and samples
        self._wait = _Wait(throughput)
        self._total = _Own()
        self._owns: dict[Hashable, _Own] = {}

    @property
    def queued_work(self) -> int:
        """Rows × samples that wait or run."""
        return self._total.work

    @property
    def queued_requests(self) -> int:
        """Requests that wait or run."""
        return self._total.requests

    @contextmanager
    def entered(
        self,
        speed: Hashable,
        rows: int,
        samples: int,
        work: int,
        *,
        requests: int = 1,
        caller: Hashable = None,
    ) -> Iterator[Ticket]:
        """Count a request while the block runs.

        Args:
            speed: the key of the request for `Throughput`.
            requests: 0 to add work to a request that was counted before.
            caller: with whom the queue is shared.

        Raises:
            Unavailable: too much work waits; the error has the seconds until it will be done.
        """
        seconds = self._throughput.seconds(speed, rows, samples)
        is_large = seconds > SLICE_SECONDS
        own = self._owns.get(caller) or _Own()
        self._check(own, work, requests, seconds if is_large else None)
        self._owns[caller] = own
        ticket = Ticket(own, self._total, seconds if is_large else 0.0)
        small = 0.0 if is_large else seconds
        kind = speed, samples
        self._count(speed, samples, rows)
        if not is_large:
            self._wait.count(kind, rows)
        for counted in (own, self._total):
            counted.work += work
            counted.requests += requests
            counted.small_seconds += small
            counted.large_seconds += ticket.large_seconds
        try:
            yield ticket
        finally:
            ticket.end()
            self._count(speed, samples, -rows)
            if not is_large:
                self._wait.count(kind, -rows)
            for counted in (own, self._total):
                counted.work -= work
                counted.requests -= requests
                counted.small_seconds -= small
            if own.is_empty:
                self._owns.pop(caller, None)
            if not self._owns:
                self._total = _Own()  # removes the rounding errors

    def drain_seconds(self) -> int:
        """Whole seconds until the work is done, from 1 to `MAX_RETRY_AFTER_SECONDS`."""
        seconds = sum(
            self._throughput.seconds(speed, rows, samples)
            for (speed, samples), rows in self._queued.items()
        )
        return _whole(seconds)

    def _check(self, own: _Own, work: int, requests: int, large: float | None) -> None:
        """Raise `Unavailable` if the caller would have more than its share of a bound.

        Args:
            large: seconds of the request if it is large, else None.
        """
        total, most = self._total, self._max_queued_work
        if total.work and total.work + work > (2 if own.is_empty else 1) * most:
            raise Unavailable(
                f"{total.work} rows × samples wait already, {own.work} of them yours; "
                f"at most {most} may (CREDENCE_MAX_QUEUED_WORK)",
                self.drain_seconds(),
            )
        if requests and own.requests + total.requests + requests > 2 * MAX_QUEUED_REQUESTS:
            message = f"{total.requests} requests wait already, {own.requests} of them yours"
            raise Unavailable(message, self.drain_seconds())
        of_all, of_own = self._before_small(own) if large is None else self._before(own, large)
        if requests and of_all + of_own > 2 * self._max_seconds:
            raise Unavailable(
                f"the waiting requests take {of_all:.1f} s, {of_own:.1f} s of it yours; at most "
                f"{self._max_seconds:g} s of one caller may wait, and less if others wait, too "
                "(CREDENCE_MAX_QUEUED_SECONDS)",
                _whole(of_all),
            )

    def _before_small(self, own: _Own) -> tuple[float, float]:
        """Seconds before a small request, and those of its caller; large ones get half the time."""
        small = self._wait.seconds
        seconds = small + min(self._total.large_seconds, small + SLICE_SECONDS)
        alone = self._total.small_seconds
        return seconds, seconds * own.small_seconds / alone if alone > 0 else 0.0

    def _before(self, own: _Own, seconds: float) -> tuple[float, float]:
        """As `_before_small`, for a large request: nobody is before it for longer than it takes."""
        until = own.large_seconds + seconds
        others = (each for each in self._owns.values() if each is not own)
        return own.large_seconds + sum(min(each.large_seconds, until) for each in others), (
            own.large_seconds
        )

    def _count(self, speed: Hashable, samples: int, rows: int) -> None:
        self._queued[speed, samples] += rows
        if not self._queued[speed, samples]:
            del self._queued[speed, samples]


def _whole(seconds: float) -> int:
    return min(max(math.ceil(seconds), 1), MAX_RETRY_AFTER_SECONDS)
