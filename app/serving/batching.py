"""Which waiting requests are computed together, and with how many samples each.

Requests share a batch if all that the computation depends on is equal; only their rows, their
intervals, levels and kinds, and their bounds of abstaining may differ. The oldest request leads;
who waits longest is never passed by another key. What takes long is computed a slice at a time,
with others in between. Nothing here knows threads or clocks, so every decision can be tested.
"""

import asyncio
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol

import torch

from app.serving.throughput import Throughput, rows_of_slice
from models.model import Encoded
from models.prediction.options import ResolvedOptions
from models.prediction.prediction import RowPrediction

# Measured on a CPU with 784-400-400-10 and 100 samples, per row: 3.2 ms alone, 2.2 by two, 1.8 by
# four, 1.5 by eight, 1.5 by 32, 2.0 by 128. More company than this only makes others wait.
CHEAPER_ROWS = 8
BATCH_SECONDS = 0.05
SAMPLE_STEPS = (10_000, 3000, 1000, 300, 100, 30, 10)  # few, so that reduced requests meet
MARGIN = 1.25  # predicted times scatter by about a quarter


class Predicts(Protocol):
    """What the engine needs of a model. What it gives has the number of its `samples`."""

    def predict_rows(self, x: Encoded, options: ResolvedOptions) -> Any: ...


@dataclass(frozen=True)
class Computed:
    """A prediction, how long it waited for the engine, and how long its batch ran."""

    prediction: Any
    queue_seconds: float
    compute_seconds: float


def _new_future() -> "asyncio.Future[Computed]":
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class Entry:
    """A request that waits.

    Args:
        artifact: names the model's parameters, wherever they are loaded.
        deadline: by `perf_counter`.
        whole: the work of inputs that are computed alone and at once: texts have lengths of their
            own, steps of a forecast depend on each other. None: `x` is a tensor of rows.
        parts: what is computed already, of the rows before `x`.
    """

    artifact: str
    model: Predicts
    x: Encoded
    options: ResolvedOptions
    deadline: float = math.inf
    submitted: float = field(default_factory=perf_counter)
    future: "asyncio.Future[Computed]" = field(default_factory=_new_future)
    taken: bool = False
    parts: list[RowPrediction] = field(default_factory=list)
    compute_seconds: float = 0.0
    whole: int | None = None

    @property
    def rows(self) -> int:
        """The work that time is learned by."""
        return len(self.x) if self.whole is None else self.whole

    @property
    def speed_key(self) -> Hashable:
        """What decides the time per work."""
        return speed_key(self.artifact, self.options)

    @cached_property
    def _own_key(self) -> object | None:
        """A unique key if this request must not share a batch, else None.

        Draws are of whole functions, and an early stop depends on all rows.
        """
        options = self.options
        alone = options.return_draws or options.target_mc_error is not None
        return object() if alone or self.whole is not None else None

    @property
    def is_divisible(self) -> bool:
        """Whether its rows may be computed some at a time."""
        return self._own_key is None

    def first_rows(self, rows: int | None) -> Encoded:
        """Of what is not computed yet; None: all."""
        return self.x if rows is None else self.x[:rows]

    def keep(self, part: RowPrediction, samples: int) -> None:
        """Put away what is computed of the first rows; the others will have as many samples."""
        self.parts.append(part)
        self.x = self.x[part.num_rows :]
        self.options = replace(self.options, samples=samples)

    def complete(self, last: Any) -> Any:
        """The prediction for all rows, of which `last` was missing."""
        return RowPrediction.joined([*self.parts, last]) if self.parts else last

    def batch_key(self, samples: int) -> Hashable:
        """Entries with an equal key may be computed as one."""
        o = self.options
        return (self.artifact, o.prune, samples, o.seed, o.sampler, self._own_key)


@dataclass(frozen=True)
class Batch:
    """Entries that are computed at once, all with as many samples; or some rows of a single one."""

    entries: Sequence[Entry]
    samples: int
    slice_rows: int | None = None

    @property
    def rows(self) -> int:
        return self.slice_rows or sum(entry.rows for entry in self.entries)

    @property
    def speed_key(self) -> Hashable:
        return self.entries[0].speed_key

    def compute(self) -> list[Any]:
        """One prediction per entry, by one call of the model."""
        first = self.entries[0]
        options = replace(first.options, samples=self.samples)
        if len(self.entries) == 1:
            return [first.model.predict_rows(first.first_rows(self.slice_rows), options)]
        levels = {level for entry in self.entries for level in entry.options.intervals}
        kinds = {kind for entry in self.entries for kind in entry.options.interval_kinds}
        options = replace(
            options,
            intervals=tuple(sorted(levels)),
            interval_kinds=tuple(sorted(kinds)),
            abstain_above=None,  # each has its own
        )
        x = torch.cat([entry.x for entry in self.entries])
        return list(self._cut(first.model.predict_rows(x, options)))

    def split(self) -> list["Batch"]:
        """Each entry alone."""
        return [Batch([entry], self.samples) for entry in self.entries]

    def _cut(self, prediction: RowPrediction) -> Iterator[RowPrediction]:
        start = 0
        for entry in self.entries:
            stop = start + entry.rows
            part = prediction.select(start, stop, entry.options)
            yield part.abstaining(entry.options.abstain_above)
            start = stop


@dataclass(frozen=True)
class Taken:
    """What leaves the queue at once: a batch to compute, and requests that are too late."""

    batch: Batch | None
    late: Sequence[Entry]


def take(waiting: Iterable[Entry], now: float, throughput: Throughput) -> Taken:
    """The oldest request with those that may share its batch, and whoever cannot be in time."""
    late: list[Entry] = []
    forming: _Forming | None = None
    for entry in waiting:
        if entry.future.done():  # nobody waits for it any more
            continue
        samples = affordable_samples(entry, now, throughput)
        if not samples:
            late.append(entry)
        elif forming is None:
            forming = _Forming(entry, samples, now, throughput)
        else:
            forming.offer(entry, samples)
    return Taken(forming.batch if forming else None, late)


class _Forming:
    """A batch that grows up to `CHEAPER_ROWS`, and further while it is predicted to end within
    `BATCH_SECONDS`; but never so that it ends too late for the most urgent in it. Its oldest
    request is there whatever it takes.
    """

    def __init__(self, oldest: Entry, samples: int, now: float, throughput: Throughput) -> None:
        self._entries, self._samples = [oldest], samples
        self._key, self._rows = oldest.batch_key(samples), oldest.rows
        self._now, self._throughput = now, throughput
        self._left_seconds = self._left(oldest)

    @property
    def batch(self) -> Batch:
        oldest, throughput = self._entries[0], self._throughput
        if len(self._entries) > 1 or not oldest.is_divisible:
            return Batch(self._entries, self._samples)
        rows = rows_of_slice(oldest.speed_key, oldest.rows, self._samples, throughput)
        return Batch(self._entries, self._samples, rows)

    def offer(self, entry: Entry, samples: int) -> None:
        """Take it in if it is alike and there is room."""
        if entry.batch_key(samples) != self._key:
            return
        rows, left = self._rows + entry.rows, min(self._left_seconds, self._left(entry))
        seconds = self._throughput.seconds(entry.speed_key, rows, samples)
        if seconds <= left and (rows <= CHEAPER_ROWS or seconds <= BATCH_SECONDS):
            self._entries.append(entry)
            self._rows, self._left_seconds = rows, left

    def _left(self, entry: Entry) -> float:
        return (entry.deadline - self._now) / MARGIN


def affordable_samples(entry: Entry, now: float, throughput: Throughput) -> int:
    """The most samples, up to the requested ones, that will be done by the deadline; 0 if none.

    Fewer than ten say nothing of an epistemic variance. Moments draw no samples to do without.
    """
    requested, left = entry.options.samples, entry.deadline - now
    if math.isinf(left) or entry.parts:  # what is begun is ended: a late answer is better than none
        return requested
    steps = () if entry.options.sampler == "moments" else SAMPLE_STEPS
    for samples in (requested, *(step for step in steps if step < requested)):
        seconds = throughput.seconds(entry.speed_key, entry.rows, samples)
        if MARGIN * seconds <= left and left > 0:
            return samples
    return 0


def behind_one(waiting: Iterable[Entry], begun: Entry) -> dict[Entry, None]:
    """The queue with `begun` behind the first that has had no turn yet, or at the end.

    So one of those gets its turn between two slices, and who has begun ends however many come.
    """
    queue = list(waiting)
    first = next((i for i, entry in enumerate(queue) if not entry.parts), len(queue))
    return dict.fromkeys([*queue[: first + 1], begun, *queue[first + 1 :]])


def speed_key(artifact: str, options: ResolvedOptions) -> Hashable:
    """What has a throughput of its own: moments draw nothing, and draws are of all weights."""
    return (artifact, options.prune, options.sampler == "moments", options.return_draws)
