"""Our work beside a reference on the same machine, in interleaved runs."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.interleaving import interleave, ratio

Run = Callable[[], float]
"""Does the work and returns its seconds."""


@dataclass(frozen=True)
class Pair:
    """Our work and what its time is divided by."""

    ours: Run
    reference: Run
    rounds: int = 15

    def ratio(self) -> float:
        """The median over the rounds of our time ÷ the reference's. A first round warms up."""
        runs = {"ours": self.ours, "reference": self.reference}
        interleave(runs, dict.fromkeys(runs, 1))
        times = interleave(runs, dict.fromkeys(runs, self.rounds))
        return ratio(times["ours"], times["reference"])


Group = Callable[[], AbstractContextManager[dict[str, Pair]]]
"""Prepares pairs, by name, that share a model or a server; the block ends what it started."""


def measure(group: Group, names: Collection[str] | None = None) -> dict[str, float]:
    """The ratios of a group, by name; of these names alone if given."""
    with group() as pairs:
        return {
            name: pair.ratio() for name, pair in pairs.items() if names is None or name in names
        }
