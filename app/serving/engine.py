"""The thread that computes predictions, and its queue.

There is one thread, because torch uses all cores inside each operation. When the thread is free, it
takes a batch of the waiting requests at once: an idle engine adds no delay, and a busy one finds
larger batches. Callers take turns (`app.serving.turns`). A request of many rows is computed in
slices, with other requests in between. What cannot be cut, such as the forecast of a series, pauses
for small requests. The idle thread sleeps on a condition.
"""

import asyncio
import contextlib
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any

import structlog
import torch

from app.serving.batching import Batch, Computed, Entry, requeue, take
from app.serving.throughput import SLICE_SECONDS, Throughput
from app.serving.turns import Turns
from core.exceptions import Unavailable
from core.process.freed_memory import SERVICE_BYTES, keep_freed_memory
from core.process.timer_slack import wake_on_time
from models.device import give_back, ran_out_of_memory
from models.prediction.prediction import RowPrediction

# The engine releases the interpreter's lock in each matrix product, some sixty per batch, and needs
# it again after each one. With CPython's 5 ms it waits that long each time while the event loop is
# busy; `wake_on_time` keeps Linux from doubling this time. With 2 µs, six of nine runs with 400
# single rows a second went under; why is not known (docs/benchmarks.md).
SWITCH_SECONDS = 5e-5

Outcome = tuple[Entry, Computed | Exception]

log = structlog.stdlib.get_logger(__name__)


class Engine:
    """Computes entries in batches. An event loop submits, awaits and cancels them."""

    def __init__(
        self,
        num_threads: int,
        throughput: Throughput,
        on_batch: Callable[[Batch], None] = lambda batch: None,
    ) -> None:
        self._throughput = throughput
        self._on_batch = on_batch
        self._waiting: dict[Entry, None] = {}  # in the order in which they came
        self._turns = Turns()
        self._num_submitted = 0
        self._running: tuple[Batch, ...] = ()  # the second runs within a pause of the first
        self._aside_seconds = 0.0  # of all batches within pauses
        self._progress = perf_counter()
        self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(
            target=self._work, args=(num_threads,), name="engine", daemon=True
        )
        self._thread.start()

    async def compute(self, entry: Entry) -> Computed:
        """The result of `entry`. Cancelling this removes it from the queue.

        Raises:
            TimeoutError: the entry cannot be computed before its deadline.
            Unavailable: the engine has stopped.
        """
        self._submit(entry)
        timer = _at_deadline(entry)
        try:
            return await entry.future
        except BaseException:  # cancelled or late; an entry that is computed has left the queue
            with self._changed:
                self._waiting.pop(entry, None)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def stalled_seconds(self) -> float:
        """Seconds without progress; 0 without work, infinite if the thread has ended."""
        if not self._thread.is_alive():
            return float("inf")
        with self._changed:
            is_idle = not self._waiting and not self._running
            return 0.0 if is_idle else perf_counter() - self._progress

    def close(self, timeout_seconds: float) -> bool:
        """Compute all submitted entries, then stop; False if that exceeds the timeout."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _submit(self, entry: Entry) -> None:
        with self._changed:
            if self._is_closing:
                raise _stopped()
            if not self._waiting and not self._running:
                self._progress = perf_counter()
            self._place(entry)
            self._waiting[entry] = None
            self._num_submitted += 1
            self._changed.notify()

    def seconds(self, entry: Entry, rows: int) -> float:
        """The estimate for so many rows of an entry, computed alone."""
        return self._throughput.seconds(entry.speed_key, rows, entry.options.samples)

    def _place(self, entry: Entry) -> None:
        large = entry.is_large = self.seconds(entry, entry.rows) > SLICE_SECONDS
        entry.arrival = self._turns.arrive(entry.caller, entry.submitted, is_large=large)

    def _work(self, num_threads: int) -> None:
        torch.set_num_threads(num_threads)  # OpenMP keeps this per calling thread
        keep_freed_memory(SERVICE_BYTES)
        wake_on_time()
        try:
            while (batch := self._next()) is not None:
                self._run(batch)
        except BaseException:
            log.critical("the prediction engine has died", exc_info=True)
        finally:
            self._fail_remaining()

    def _next(self) -> Batch | None:
        """Wait for a batch; None if the engine closes and the queue is empty.

        The batch is chosen while no lock is held: with many requests it takes so long that the
        event loop, which submits, would wait.
        """
        with self._changed:
            self._running = ()
        while True:
            with self._changed:
                waiting, known = self._in_turn(list(self._waiting)), self._num_submitted
                if not waiting:
                    self._turns.forget()
            now = perf_counter()
            is_shared = bool(waiting) and self._turns.is_shared(waiting[0], now)
            taken = take(waiting, now, self._throughput, is_shared=is_shared)
            self._refuse(taken.late)
            with self._changed:
                if taken.batch is not None:
                    self._begin(taken.batch)
                    return taken.batch
                if self._num_submitted == known:
                    if self._is_closing:
                        return None
                    self._changed.wait()

    def _let_small_pass(self) -> None:
        """Compute a batch of small requests, if any wait, within a pause of a large one."""
        if not self._waiting:  # without the lock: the next pause is soon
            return
        started, outer = perf_counter(), self._running
        with self._changed:
            waiting = self._in_turn([entry for entry in self._waiting if not entry.is_large])
        taken = take(waiting, started, self._throughput)
        self._refuse(taken.late)
        if taken.batch is None:
            return
        with self._changed:
            self._begin(taken.batch)
        with torch.inference_mode(mode=False):  # what a model keeps must not be of the large one's
            self._run(taken.batch)
        with self._changed:
            self._running = outer
        self._aside_seconds += perf_counter() - started

    def _in_turn(self, waiting: list[Entry]) -> list[Entry]:
        """Waiting entries: first the one whose turn it is, then the others, oldest first."""
        first = self._turns.next(waiting)
        if first is not None and first is not waiting[0]:
            waiting.remove(first)
            waiting.insert(0, first)
        return waiting

    def _begin(self, batch: Batch) -> None:
        self._running, self._progress = (*self._running, batch), perf_counter()
        for entry in batch.entries:
            entry.is_started = True
            self._waiting.pop(entry, None)

    def _refuse(self, late: Iterable[Entry]) -> None:
        for entry in late:
            with self._changed:
                self._waiting.pop(entry, None)
            self._throughput.lower(entry.speed_key)
        _deliver([(entry, _late()) for entry in late])

    def _run(self, batch: Batch, *, is_half: bool = False) -> None:
        """Compute a batch. If it fails, compute each entry alone, so that only wrong ones fail.

        If a single entry needs too much memory, half of its rows are tried once.
        """
        started, failure = self._own_seconds(), None
        try:
            predictions = batch.compute(self._let_small_pass)
        except Exception as error:
            failure = _out_of_memory(batch, error) or error
            self._charge(batch, self._own_seconds() - started)
        else:
            seconds = self._own_seconds() - started
            samples = predictions[0].samples or batch.samples  # fewer if target_mc_error was met
            if batch.is_typical:
                counted = batch.seconds_before + seconds
                self._throughput.observe(batch.speed_key, batch.rows, samples, counted)
            self._charge(batch, seconds)
            self._on_batch(batch)
            if batch.is_part:
                self._requeue(batch, predictions[0])
            else:
                _deliver(_results(batch.entries, predictions))
        finally:
            self._progress = perf_counter()
        if failure is not None:  # here, where nothing holds the tensors of what failed any more
            self._try_less(batch, failure, is_half=is_half)

    def _own_seconds(self) -> float:
        """A clock that stands still for a batch while others run in its pauses."""
        return perf_counter() - self._aside_seconds

    def _charge(self, batch: Batch, seconds: float) -> None:
        """Count the seconds of a batch for the callers of its rows."""
        for entry in batch.entries:
            entry.compute_seconds += seconds
            share = 1.0 if batch.slice_rows else entry.rows / max(1, batch.rows)
            with self._changed:
                self._turns.charge(entry, share * seconds)

    def _try_less(self, batch: Batch, failure: Exception, *, is_half: bool) -> None:
        if len(batch.entries) > 1:
            for alone in batch.split():
                self._run(alone)
            return
        half = batch.half() if isinstance(failure, OutOfMemory) and not is_half else None
        if half is None:
            _deliver([(batch.entries[0], failure)])
            return
        give_back()
        self._run(half, is_half=True)

    def _requeue(self, batch: Batch, part: RowPrediction) -> None:
        """Keep the slice, and queue the other rows, unless the request was cancelled."""
        (entry,) = batch.entries
        share = batch.rows / max(1, entry.rows)
        entry.keep(part, batch.samples)
        with contextlib.suppress(RuntimeError):  # the loop is closed: no request waits
            entry.future.get_loop().call_soon_threadsafe(entry.on_slice, share)
        with self._changed:
            if not entry.future.done():
                self._waiting = requeue(self._waiting, entry)

    def _fail_remaining(self) -> None:
        with self._changed:
            self._is_closing = True
            left = [*self._waiting, *(one for batch in self._running for one in batch.entries)]
            self._waiting.clear()
        _deliver([(entry, _stopped()) for entry in left])


def _results(entries: Sequence[Entry], predictions: Sequence[Any]) -> list[Outcome]:
    """The result of each entry. All time without computation is time in the queue."""
    now = perf_counter()
    return [
        (
            entry,
            Computed(
                entry.complete(last),
                now - entry.submitted - entry.compute_seconds,
                entry.compute_seconds,
            ),
        )
        for entry, last in zip(entries, predictions, strict=True)
    ]


class OutOfMemory(Unavailable):
    """A computation needs more memory than there is. It holds no tensors, as a traceback would."""


def _out_of_memory(batch: Batch, error: Exception) -> OutOfMemory | None:
    """The answer to an error that says so; None for others."""
    if not ran_out_of_memory(error):
        return None
    size = f"{batch.rows} rows × {batch.samples} samples"
    log.warning("a prediction ran out of memory", size=size, error=str(error)[:500])
    return OutOfMemory(
        f"the service ran out of memory at {size}: send fewer rows or samples at once, or try "
        "again later; the operator may lower CREDENCE_MAX_WORK"
    )


def _at_deadline(entry: Entry) -> asyncio.TimerHandle | None:
    """A timer that refuses an entry at its deadline, unless it has started."""

    def expire() -> None:
        if not entry.is_started and not entry.future.done():
            entry.future.set_exception(_late())

    if math.isinf(entry.deadline):
        return None
    return entry.future.get_loop().call_later(entry.deadline - perf_counter(), expire)


def _late() -> TimeoutError:
    return TimeoutError("the prediction cannot be computed before its deadline")


def _stopped() -> Unavailable:
    return Unavailable("the prediction engine has stopped: restart the process")


def _deliver(outcomes: list[Outcome]) -> None:
    """Set the results of futures, with a single wake-up of the event loop."""
    if outcomes:
        loop = outcomes[0][0].future.get_loop()
        with contextlib.suppress(RuntimeError):  # the loop is closed: no request waits
            loop.call_soon_threadsafe(_resolve, outcomes)


def _resolve(outcomes: list[Outcome]) -> None:
    for entry, outcome in outcomes:
        if entry.future.done():
            continue
        if isinstance(outcome, Exception):
            entry.future.set_exception(outcome)
        else:
            entry.future.set_result(outcome)


@contextlib.contextmanager
def frequent_thread_switches() -> Iterator[None]:
    """In the block, the threads of this process wait microseconds for the interpreter's lock."""
    before = sys.getswitchinterval()
    wake_on_time()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
