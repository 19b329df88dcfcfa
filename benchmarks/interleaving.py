"""Interleaved runs: a temporary slowdown of the machine affects all contenders alike."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

Times = dict[str, list[float]]


def rounds(names: Sequence[str], repetitions: Mapping[str, int]) -> Iterator[str]:
    """Who runs next: everyone in turn, starting with another each round, until all have run often
    enough.

    >>> list(rounds(["a", "b"], {"a": 2, "b": 1}))
    ['a', 'b', 'a']
    """
    for turn in range(max(repetitions.values(), default=0)):
        start = turn % len(names)
        for name in [*names[start:], *names[:start]]:
            if turn < repetitions[name]:
                yield name


def interleave(runs: Mapping[str, Callable[[], float]], repetitions: Mapping[str, int]) -> Times:
    """Collect what each run returns (for example milliseconds), in the order of the rounds."""
    times: Times = {name: [] for name in runs}
    for name in rounds(list(runs), repetitions):
        times[name].append(runs[name]())
    return times


def ratio(times: Sequence[float], reference: Sequence[float]) -> float:
    """Median over the rounds of time ÷ reference, both from the same round.

    >>> ratio([2.0, 30.0], [1.0, 10.0, 7.0])
    2.5
    """
    return statistics.median(t / r for t, r in zip(times, reference, strict=False))
