"""Selects the waiting requests that the engine computes as one batch, and their samples.

Requests share a batch if they agree in all that the computation depends on. Their rows, intervals
and `abstain_above` may differ. The oldest request is always in the next batch. A long computation
is split into slices, with other requests in between. This module uses no threads and reads no
clock, so that tests control every decision.
"""

import asyncio
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from app.serving.throughput import SpeedKey, Throughput, rows_of_slice
from app.serving.turns import Arrival
from models.features.columns import Columns
from models.model import Encoded, TrainedModel
from models.prediction.options import ResolvedOptions
from models.prediction.pauses import Pause, Pausing, go_on
from models.prediction.prediction import RowPrediction
from models.prediction.work import values_per_sample

BATCH_SECONDS = 0.05
SAMPLE_STEPS = (10_000, 3000, 1000, 300, 100, 30, 10)  # few, so that reduced requests share batches
MAX_LEVELS = 16  # of a batch, whose rows all have the levels of all: as many as of one request
MARGIN = 1.25  # predicted times vary by about a quarter


class Predicts(Protocol):
    """The method of a model that the engine calls. The result has an attribute `samples`."""

    def predict_rows(self, x: Encoded, options: ResolvedOptions) -> Any: ...


@runtime_checkable
class DrawsApart(Protocol):
    """A model that computes its draws apart from the rest of an answer, which may be sliced."""

    def draws_of(self, x: Encoded, options: ResolvedOptions, pause: Pause) -> np.ndarray: ...


@dataclass(frozen=True)
class Unencoded:
    """Rows that the engine encodes: those of a batch at once, which takes as long as a single one.

    Only for models whose rows are encoded independently.
    """

    model: TrainedModel
    columns: Columns
    rows: int

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, rows: slice) -> "Unencoded":
        some = {name: values[rows] for name, values in self.columns.items()}
        return Unencoded(self.model, some, len(range(*rows.indices(self.rows))))

    def encoded(self) -> Encoded:
        return self.model.encode(self.columns)

    @classmethod
    def joined(cls, parts: Sequence["Unencoded"]) -> "Unencoded":
        """The rows of all parts, which are of one model."""
        first = parts[0]
        columns = {
            name: np.concatenate([part.columns[name] for part in parts]) for name in first.columns
        }
        return cls(first.model, columns, sum(part.rows for part in parts))


def _encoded(parts: Sequence[Encoded]) -> Encoded:
    """The encoded rows of the entries of a batch, in their order."""
    if all(isinstance(part, Unencoded) for part in parts):
        return (Unencoded.joined(parts) if len(parts) > 1 else parts[0]).encoded()
    parts = [part.encoded() if isinstance(part, Unencoded) else part for part in parts]
    return torch.cat(parts) if len(parts) > 1 else parts[0]


@dataclass(frozen=True)
class Computed:
    """A prediction, its seconds in the queue, and its seconds of computation."""

    prediction: Any
    queue_seconds: float
    compute_seconds: float


def _new_future() -> "asyncio.Future[Computed]":
    return asyncio.get_running_loop().create_future()


NEVER = Arrival(0.0, 0.0)


@dataclass(eq=False)
class Entry:
    """A waiting request.

    Args:
        artifact: identifies the model's parameters.
        deadline: in seconds of `perf_counter`.
        is_started: whether the engine has computed a part of it, or is computing it.
        parts: predictions of the rows before `x`.
        unit: how many rows must be computed together: 1 if they are independent, the steps of a
            series' forecast; None if all must. Only independent rows share a batch.
        joint_work: the work of inputs that are not rows: texts differ in length.
        per_sample: values of each sample of a row; None for those that the options tell.
        caller: with whom the engine's time is shared.
        is_large: whether it takes longer than a slice. The engine sets it, and `arrival`.
        on_slice: called on the event loop with the share of the rows that a slice had.
    """

    artifact: str
    model: Predicts
    x: Encoded
    options: ResolvedOptions
    deadline: float = math.inf
    submitted: float = field(default_factory=perf_counter)
    future: "asyncio.Future[Computed]" = field(default_factory=_new_future)
    is_started: bool = False
    parts: list[RowPrediction] = field(default_factory=list)
    compute_seconds: float = 0.0
    unit: int | None = 1
    joint_work: int | None = None
    per_sample: int | None = None
    caller: Hashable = None
    on_slice: Callable[[float], None] = lambda share: None
    is_large: bool = False
    arrival: Arrival = NEVER

    def __post_init__(self) -> None:
        is_apart = self.options.return_draws and isinstance(self.model, DrawsApart)
        self.all_rows = self.x if is_apart and self.unit == 1 else None
        """Of which draws are computed, after the answers of all rows; None if not apart."""

    @property
    def rows(self) -> int:
        """The work that is left, as `Throughput` counts it."""
        if self.joint_work is not None:
            return self.joint_work
        rows = self.all_rows if self.are_draws_left else self.x
        return 0 if rows is None else len(rows)

    @property
    def are_draws_left(self) -> bool:
        """Whether nothing but draws is left to compute."""
        return self.all_rows is not None and not len(self.x)

    @cached_property
    def speed_key(self) -> SpeedKey:
        """The key for `Throughput`."""
        return speed_key(self.artifact, self.options, self.per_sample)

    @property
    def slice_options(self) -> ResolvedOptions:
        """Those of the next computation: draws that are apart come after all rows."""
        is_later = self.all_rows is not None and not self.are_draws_left
        return replace(self.options, return_draws=False) if is_later else self.options

    @property
    def slice_key(self) -> SpeedKey:
        """The key of the next computation."""
        options = self.slice_options
        is_usual = options is self.options  # whose key is kept
        return self.speed_key if is_usual else speed_key(self.artifact, options, self.per_sample)

    @cached_property
    def _own_key(self) -> object | None:
        """A unique key if this request must not share a batch, else None."""
        is_alone = self._is_whole or self.all_rows is not None or self.unit != 1
        return object() if is_alone else None

    @property
    def _is_whole(self) -> bool:
        """Each draw is one function over all rows, sums over series have all of them, and
        `target_mc_error` depends on all rows.
        """
        o = self.options
        are_summed = o.totals is not None and o.totals.over_series
        are_together = o.return_draws and self.all_rows is None
        return are_together or are_summed or o.target_mc_error is not None

    @property
    def is_divisible(self) -> bool:
        """Whether the rows may be computed in slices."""
        return self.unit is not None and not self._is_whole and not self.are_draws_left

    @property
    def whole_rows(self) -> int:
        """The rows of the smallest slice."""
        return self.unit if self.is_divisible and self.unit is not None else self.rows

    def whole_units(self, rows: int | None) -> int | None:
        """Rows of a slice, rounded up to whole units; None for all."""
        if rows is None or self.unit is None:
            return rows
        rounded = -(-rows // self.unit) * self.unit
        return rounded if rounded < self.rows else None

    def first_rows(self, rows: int | None) -> Encoded:
        """The first rows that are not computed yet; all of them for None."""
        return self.x if rows is None else self.x[:rows]

    def compute(self, rows: int | None, samples: int, pause: Pause) -> Any:
        """The prediction of the first rows that are left, or of all with their draws.

        Args:
            pause: called within a large request's rows, where these take long.
        """
        options = replace(self.slice_options, samples=samples)
        if not (self.are_draws_left and isinstance(self.model, DrawsApart)):
            x = _encoded([self.first_rows(rows)])
            if self.is_large and isinstance(self.model, Pausing):
                return self.model.predict_pausing(x, options, pause)
            return self.model.predict_rows(x, options)
        pause = pause if self.is_large else go_on
        draws = self.model.draws_of(_encoded([self.all_rows]), options, pause)
        return self.parts[0].joined(self.parts).with_draws(draws)

    def keep(self, part: RowPrediction, samples: int) -> None:
        """Store the prediction of the first rows. The other rows will get as many samples."""
        self.parts.append(part)
        self.x = self.x[part.num_rows :]
        self.options = replace(self.options, samples=samples)
        for derived in ("speed_key", "_shared_key"):
            self.__dict__.pop(derived, None)

    def complete(self, last: Any) -> Any:
        """The prediction for all rows, from the stored parts and `last`."""
        is_joined = not self.parts or self.are_draws_left
        return last if is_joined else self.parts[0].joined([*self.parts, last])

    def batch_key(self, samples: int) -> Hashable:
        """The key of entries that may share a batch."""
        return (samples, self._shared_key)

    @cached_property
    def _shared_key(self) -> Hashable:
        return (self.artifact, self.options.shared, self.speed_key.work, self._own_key)


@dataclass(frozen=True)
class Batch:
    """Entries that are computed together with the same samples, or a slice of a single entry."""

    entries: Sequence[Entry]
    samples: int
    slice_rows: int | None = None

    @property
    def rows(self) -> int:
        return self.slice_rows or sum(entry.rows for entry in self.entries)

    @property
    def speed_key(self) -> SpeedKey:
        return self.entries[0].slice_key

    @property
    def is_part(self) -> bool:
        """Whether its entry is not ready after it: rows or draws are left."""
        first = self.entries[0]
        return self.slice_rows is not None or (
            first.all_rows is not None and not first.are_draws_left
        )

    @property
    def seconds_before(self) -> float:
        """What counts with its time: with draws, that of all rows before them."""
        first = self.entries[0]
        return first.compute_seconds if first.are_draws_left else 0.0

    @property
    def is_typical(self) -> bool:
        """Whether its time is that of requests with this key: not much more is computed."""
        levels = {level for entry in self.entries for level in entry.options.intervals}
        return len(levels) <= 2 * max(1, len(self.entries[0].options.intervals))

    def compute(self, pause: Pause = go_on) -> list[Any]:
        """One prediction per entry, from one call of the model."""
        first = self.entries[0]
        if len(self.entries) == 1:
            return [first.compute(self.slice_rows, self.samples, pause)]
        levels = {level for entry in self.entries for level in entry.options.intervals}
        kinds = {kind for entry in self.entries for kind in entry.options.interval_kinds}
        options = replace(
            first.options,
            samples=self.samples,
            intervals=tuple(sorted(levels)),
            interval_kinds=tuple(sorted(kinds)),
            abstain_above=None,  # applied to each entry below
        )
        x = _encoded([entry.x for entry in self.entries])
        return list(self._of_entries(first.model.predict_rows(x, options)))

    def split(self) -> list["Batch"]:
        """One batch per entry."""
        return [Batch([entry], self.samples) for entry in self.entries]

    def half(self) -> "Batch | None":
        """The first half of the rows of a single entry; None if they must be computed together."""
        (entry,) = self.entries
        rows = entry.whole_units(self.rows // 2) if entry.is_divisible and self.rows > 1 else None
        return None if rows is None else Batch(self.entries, self.samples, rows)

    def _of_entries(self, prediction: RowPrediction) -> Iterator[RowPrediction]:
        start = 0
        for entry in self.entries:
            stop = start + entry.rows
            part = prediction.select(start, stop, entry.options)
            yield part.abstaining(entry.options.abstain_above)
            start = stop


@dataclass(frozen=True)
class Taken:
    """Requests that leave the queue: a batch to compute, and those that miss their deadline."""

    batch: Batch | None
    late: Sequence[Entry]


def take(
    waiting: Iterable[Entry], now: float, throughput: Throughput, *, is_shared: bool = False
) -> Taken:
    """The batch of the first request and those that may share it, and the late requests.

    Args:
        waiting: next first.
        now: in seconds of `perf_counter`.
        is_shared: whether others wait for slices, which are then as short as they may be.
    """
    late: list[Entry] = []
    builder: _BatchBuilder | None = None
    for entry in waiting:
        if entry.future.done():  # cancelled
            continue
        samples = affordable_samples(entry, now, throughput)
        if not samples:
            late.append(entry)
        elif builder is None:
            builder = _BatchBuilder(entry, samples, now, throughput, is_shared=is_shared)
        else:
            builder.add_if_fits(entry, samples)
    return Taken(builder.batch if builder else None, late)


class _BatchBuilder:
    """A batch that grows while that makes its rows cheaper (`growth`), and further while its
    predicted time is within `BATCH_SECONDS`. It must also meet every deadline in it. The oldest
    request is always in it.
    """

    def __init__(
        self, oldest: Entry, samples: int, now: float, throughput: Throughput, *, is_shared: bool
    ) -> None:
        self._entries, self._samples, self._is_shared = [oldest], samples, is_shared
        self._levels = set(oldest.options.intervals)
        self._key, self._rows = oldest.batch_key(samples), oldest.rows
        self._now, self._throughput = now, throughput
        self._cheaper_rows = throughput.rows_worth_joining(oldest.slice_key)
        self._left_seconds = self._left(oldest)

    @property
    def batch(self) -> Batch:
        oldest, throughput = self._entries[0], self._throughput
        if len(self._entries) > 1 or not oldest.is_divisible:
            return Batch(self._entries, self._samples)
        if self._is_unmeasured(oldest):
            return Batch(self._entries, self._samples, 1 if oldest.rows > 1 else None)
        rows = rows_of_slice(
            oldest.slice_key, oldest.rows, self._samples, throughput, is_shared=self._is_shared
        )
        return Batch(self._entries, self._samples, oldest.whole_units(rows))

    def _is_unmeasured(self, entry: Entry) -> bool:
        """Whether the time of a row may be long and is not known: it is then computed alone."""
        return entry.options.explain and not self._throughput.knows(entry.speed_key)

    def add_if_fits(self, entry: Entry, samples: int) -> None:
        if entry.batch_key(samples) != self._key or self._is_unmeasured(entry):
            return
        if not self._levels.issuperset(entry.options.intervals) and not self._adds_levels(entry):
            return
        rows, left = self._rows + entry.rows, min(self._left_seconds, self._left(entry))
        seconds = self._throughput.seconds(entry.speed_key, rows, samples)
        if seconds <= left and (rows <= self._cheaper_rows or seconds <= BATCH_SECONDS):
            self._entries.append(entry)
            self._rows, self._left_seconds = rows, left

    def _adds_levels(self, entry: Entry) -> bool:
        """Add the levels of intervals, which are computed for all rows; False if they are many."""
        levels = self._levels.union(entry.options.intervals)
        if len(levels) > MAX_LEVELS:
            return False
        self._levels = levels
        return True

    def _left(self, entry: Entry) -> float:
        return (entry.deadline - self._now) / MARGIN


def affordable_samples(entry: Entry, now: float, throughput: Throughput) -> int:
    """The most samples, up to the requested ones, that meet the deadline; 0 if none do.

    Fewer than ten samples do not estimate an epistemic variance. The sampler `moments` draws none,
    so there are none to reduce.
    """
    requested, left = entry.options.samples, entry.deadline - now
    if math.isinf(left) or entry.parts:  # started: a late response is better than none
        return requested
    steps = () if entry.options.sampler == "moments" else SAMPLE_STEPS
    for samples in (requested, *(step for step in steps if step < requested)):
        seconds = throughput.seconds(entry.speed_key, entry.rows, samples)
        if MARGIN * seconds <= left and left > 0:
            return samples
    return 0


def requeue(waiting: Iterable[Entry], sliced: Entry) -> dict[Entry, None]:
    """The queue with `sliced` behind the caller's first large entry that has no parts, or else at
    the end.

    So one new request runs between two slices, and new requests cannot delay `sliced` for ever.
    """
    queue, flow = list(waiting), (sliced.caller, sliced.is_large)
    new = (
        i
        for i, entry in enumerate(queue)
        if not entry.parts and (entry.caller, entry.is_large) == flow
    )
    first = next(new, len(queue))
    return dict.fromkeys([*queue[: first + 1], sliced, *queue[first + 1 :]])


def speed_key(artifact: str, options: ResolvedOptions, per_sample: int | None = None) -> SpeedKey:
    """The key for `Throughput`.

    `moments` draws nothing, `return_draws` draws all weights, and `explain` predicts hundreds of
    rows for each. Requests whose answers are about the same work, to a factor of two, are measured
    together.

    Args:
        per_sample: as `TrainedModel.values_per_sample`; None for what the options tell.
    """
    is_closed, work = options.sampler == "moments", per_sample or values_per_sample(options)
    draws, explain = options.return_draws, options.explain
    return SpeedKey(artifact, options.prune, is_closed, draws, explain, work.bit_length())
