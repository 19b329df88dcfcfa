"""Estimates the seconds of computations from earlier ones, and the size of slices."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from app.serving.growth import UNMEASURED_ROWS
from core.bounded import keep

# Measured with one thread, ms per row. 784-400-400-10 with 100 samples: 14 alone, 1.6 in slices of
# 32 rows (50 ms), 3.3 in one of 256. 13-50-2 with 10,000 samples: 21 alone, 7 in slices of 16
# (108 ms), 15 in one of 256. So slices of this length do not make a request slower.
SLICE_SECONDS = 0.1
# While others wait, slices are as short as the time per row allows: at least this long, and at most
# so much slower per row than the long ones.
SHORT_SECONDS = 0.01
SLOWER = 1.25
LEARNING_RATE = 0.2  # of an exponential moving average: the last few computations count
MAX_KNOWN = 4096  # keys; each version has some, and versions come and go
LOWERING = 0.9  # per refusal: seven refusals halve an estimate


class SpeedKey(NamedTuple):
    """What the time of a computation depends on, beside rows and samples.

    Args:
        is_closed: whether the sampler is `moments`, which draws nothing.
        work: number of bits of the work of a sample of a row (`values_per_sample`).
    """

    artifact: str
    prune: float
    is_closed: bool
    draws: bool
    explain: bool
    work: int

    @property
    def model(self) -> tuple[str, float, bool]:
        return self.artifact, self.prune, self.is_closed

    @property
    def typical_work(self) -> float:
        """The middle of the values with so many bits."""
        return 1.0 if self.work <= 1 else 0.75 * 2.0**self.work


@dataclass(frozen=True)
class _Mean:
    """The mean rows, samples and seconds of computations of about the same size."""

    rows: float
    samples: float
    seconds: float

    def towards(self, rows: float, samples: float, seconds: float) -> "_Mean":
        return _Mean(
            self.rows + LEARNING_RATE * (rows - self.rows),
            self.samples + LEARNING_RATE * (samples - self.samples),
            self.seconds + LEARNING_RATE * (seconds - self.seconds),
        )

    def bound(self, rows: int, samples: int) -> float:
        """An upper bound on the seconds of another size.

        It assumes that a larger computation is not slower per row or sample, and that a smaller one
        is not slower in total.
        """
        seconds = self.seconds  # without `max`, which takes most of the time of each admission
        if rows > self.rows:
            seconds *= rows / self.rows
        return seconds * samples / self.samples if samples > self.samples else seconds


class Throughput:
    """Estimates the seconds of a computation from its key, rows and samples.

    Sizes are grouped by powers of two. The mean of each group gives an upper bound for any other
    size (`_Mean.bound`); the estimate is the least bound. Any thread may read and write, because
    values are replaced and not changed: at worst an observation is lost. The newest keys are kept.

    Of answers that were not asked for before, the time follows from that of the model's cheapest
    ones and from their work. How much a unit of work takes, relative to a pass through the network,
    is measured when a model is loaded (`keep_answer_share`).
    """

    def __init__(self) -> None:
        self._means: dict[Hashable, dict[tuple[int, int], _Mean]] = {}
        self._worth_joining: dict[Hashable, int] = {}
        self._cheapest: dict[tuple[str, float, bool], SpeedKey] = {}
        self._answer_shares: dict[str, float] = {}
        self._lowered: dict[Hashable, float] = {}  # factors on estimates that nothing measured

    def observe(self, key: Hashable, rows: int, samples: int, seconds: float) -> None:
        """Learn from a computation."""
        means, size = self._means.get(key, {}), (rows.bit_length(), samples.bit_length())
        mean = means.get(size, _Mean(rows, samples, seconds))
        means = means | {size: mean.towards(rows, samples, seconds)}
        self._lowered.pop(key, None)
        keep(self._means, key, means, MAX_KNOWN)
        if isinstance(key, SpeedKey) and not (key.draws or key.explain):
            known = self._cheapest.get(key.model)
            if known is None or key.work < known.work:
                keep(self._cheapest, key.model, key, MAX_KNOWN)

    def knows(self, key: Hashable) -> bool:
        """Whether there are observations of a key."""
        return key in self._means

    def seconds(self, key: Hashable, rows: int, samples: int) -> float:
        """The estimate for `rows` × `samples` in one computation; 0 without observations."""
        means = self._means.get(key)
        if means:
            return min([mean.bound(rows, samples) for mean in means.values()])
        if not isinstance(key, SpeedKey):
            return 0.0
        return self._lowered.get(key, 1.0) * self._by_work(key, rows, samples)

    def _by_work(self, key: SpeedKey, rows: int, samples: int) -> float:
        """The estimate for answers that were not measured yet."""
        known = self._cheapest.get(key.model)
        if known is None:
            return 0.0
        times = key.typical_work / known.typical_work
        if key.explain:  # so many rows are predicted for each, which takes less than one by one
            return self.seconds(known, round(rows * times), samples)
        share = 1.0 if key.draws else self._answer_shares.get(key.artifact, 1.0)  # beside a pass
        return self.seconds(known, rows, samples) * max(1.0, 1.0 + share * (times - 1.0))

    def artifacts(self) -> Collection[str]:
        """The artifacts of which something is known."""
        keys = [*self._means, *self._worth_joining, *self._lowered]
        models = {key.artifact for key in keys if isinstance(key, SpeedKey)}
        return models | {artifact for artifact, *_ in [*self._cheapest]} | {*self._answer_shares}

    def forget(self, artifacts: Collection[str]) -> None:
        """Drop what is known of these artifacts."""
        for known in (self._means, self._worth_joining, self._lowered):
            for key in list(known):
                if isinstance(key, SpeedKey) and key.artifact in artifacts:
                    known.pop(key, None)
        for model in list(self._cheapest):
            if model[0] in artifacts:
                self._cheapest.pop(model, None)
        for artifact in artifacts:
            self._answer_shares.pop(artifact, None)

    def keep_answer_share(self, artifact: str, share: float) -> None:
        """Keep the time of a unit of work relative to that of the default answers."""
        keep(self._answer_shares, artifact, share, MAX_KNOWN)

    def keep_growth(self, key: Hashable, rows: int) -> None:
        """Keep the rows up to which larger batches of a key take less time per row."""
        keep(self._worth_joining, key, rows, MAX_KNOWN)

    def rows_worth_joining(self, key: Hashable) -> int:
        """The rows that `keep_growth` kept."""
        return self._worth_joining.get(key, UNMEASURED_ROWS)

    def lower(self, key: Hashable) -> None:
        """Lower the estimates after a refusal, so that after several ones a request is tried again.

        Refused requests are not measured, so an estimate that is too high would never change.
        """
        means = self._means.get(key)
        if not means:
            keep(self._lowered, key, LOWERING * self._lowered.get(key, 1.0), MAX_KNOWN)
            return
        self._means[key] = {
            size: _Mean(mean.rows, mean.samples, LOWERING * mean.seconds)
            for size, mean in means.items()
        }


def rows_of_slice(
    key: Hashable, rows: int, samples: int, throughput: Throughput, *, is_shared: bool = False
) -> int | None:
    """The rows of a slice; None if the whole request fits into one slice.

    A slice takes at most `SLICE_SECONDS`, or 1.5 times as long as one row if that is longer. It has
    at least one row. It has more if most of the time does not depend on the number of rows, such as
    for draws of all weights.

    Args:
        is_shared: whether others wait. A slice is then the shortest of at least `SHORT_SECONDS`
            that takes at most `SLOWER` times as long per row.
    """
    seconds = partial(throughput.seconds, key, samples=samples)
    most = max(SLICE_SECONDS, 1.5 * seconds(1))
    if seconds(rows) <= (2 * SHORT_SECONDS if is_shared else most):
        return None
    sizes = [n for k in range(rows.bit_length()) if (n := 2**k) == 1 or seconds(n) <= most]
    longest = max(sizes)
    if not is_shared:
        return longest
    each = SLOWER * seconds(longest) / longest
    short = min(n for n in sizes if n == longest or SHORT_SECONDS <= seconds(n) <= each * n)
    return short if short < rows else None
