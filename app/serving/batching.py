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
from torch import Tensor

from app.serving.scored import Labelled, Scored
from app.serving.slices import rows_of_slice
from app.serving.throughput import Throughput
from models.forecasting.rollout import History
from models.language.prediction import TextPrediction
from models.prediction.joining import joined
from models.prediction.options import ResolvedOptions
from models.prediction.prediction import Prediction

AnyPrediction = Prediction | TextPrediction | Scored

# Measured on a CPU with 784-400-400-10 and 100 samples, per row: 3.2 ms alone, 2.2 by two, 1.8 by
# four, 1.5 by eight, 1.5 by 32, 2.0 by 128. More company than this only makes others wait.
CHEAPER_ROWS = 8
BATCH_SECONDS = 0.05
SAMPLE_STEPS = (10_000, 3000, 1000, 300, 100, 30, 10)  # few, so that reduced requests meet
MARGIN = 1.25  # predicted times scatter by about a quarter


class Predicts(Protocol):
    """The side of a model that the engine sees; settled options, encoded rows."""

    def predict_rows(self, x: Any, options: ResolvedOptions) -> AnyPrediction: ...


@dataclass(frozen=True)
class Computed:
    """A prediction, how long it waited for the engine, and how long its batch ran."""

    prediction: AnyPrediction
    queue_seconds: float
    compute_seconds: float


def _new_future() -> "asyncio.Future[Computed]":
    return asyncio.get_running_loop().create_future()


@dataclass(eq=False)
class Entry:
    """A request that waits. `artifact` names the model's parameters, wherever they are loaded."""

    artifact: str
    model: Predicts
    x: Tensor | History
    options: ResolvedOptions
    deadline: float = math.inf  # by `perf_counter`
    submitted: float = field(default_factory=perf_counter)
    future: "asyncio.Future[Computed]" = field(default_factory=_new_future)
    taken: bool = False
    parts: list[Prediction] = field(default_factory=list)  # of the rows that were before `x`
    compute_seconds: float = 0.0

    @property
    def rows(self) -> int:
        """What time is learned by: of texts, which alone ask for a `top`, the steps of them all."""
        if isinstance(self.x, Tensor) and self.options.top is not None:
            return self.x[:, 1:].numel()
        return len(self.x)

    @property
    def speed_key(self) -> Hashable:
        """What decides the time per work."""
        return speed_key(self.artifact, self.options)

    @cached_property
    def _own(self) -> object | None:
        """Draws are of whole functions, an early stop depends on all rows, texts have lengths of
        their own, the rows of a forecast depend on each other, and labels are of these rows alone:
        never shared.
        """
        o = self.options
        own = (o.target_mc_error, o.top, o.horizon)
        alone = o.return_draws or isinstance(self.model, Labelled)
        alone = alone or any(value is not None for value in own)
        return object() if alone else None

    @property
    def is_divisible(self) -> bool:
        """Whether its rows may be computed some at a time. Texts share draws that cost more."""
        return self._own is None and isinstance(self.x, Tensor)

    def first_rows(self, rows: int | None) -> Tensor | History:
        """Of what is not computed yet; None: all."""
        return self.x[:rows] if isinstance(self.x, Tensor) else self.x

    def keep(self, part: Prediction, samples: int) -> None:
        """Put away what is computed of the first rows; the others will have as many samples."""
        assert isinstance(self.x, Tensor)
        self.parts.append(part)
        self.x = self.x[part.num_rows :]
        self.options = replace(self.options, samples=samples)

    def whole(self, last: AnyPrediction) -> AnyPrediction:
        """The answer, of which `last` is what was missing."""
        if not self.parts:
            return last
        assert isinstance(last, Prediction)
        return joined([*self.parts, last])

    def batch_key(self, samples: int) -> Hashable:
        """Entries with an equal key may be computed as one."""
        o = self.options
        return (self.artifact, o.prune, samples, o.seed, o.sampler, self._own)


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

    def compute(self) -> list[AnyPrediction]:
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
        x = torch.cat([entry.x for entry in self.entries if isinstance(entry.x, Tensor)])
        together = first.model.predict_rows(x, options)
        if not isinstance(together, Prediction):
            raise TypeError("texts and labelled rows are computed one request at a time")
        return list(self._cut(together))

    def split(self) -> list["Batch"]:
        """Each entry alone."""
        return [Batch([entry], self.samples) for entry in self.entries]

    def _cut(self, prediction: Prediction) -> Iterator[Prediction]:
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
    """The most samples, up to those asked for, that will be done by the deadline; 0 if none.

    Fewer than ten say nothing of an epistemic variance. Moments draw no samples to do without.
    """
    asked, left = entry.options.samples, entry.deadline - now
    if math.isinf(left) or entry.parts:  # what is begun is ended: a late answer is better than none
        return asked
    steps = () if entry.options.sampler == "moments" else SAMPLE_STEPS
    for samples in (asked, *(step for step in steps if step < asked)):
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
