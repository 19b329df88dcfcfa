"""Interleaved runs, so that a temporary slowdown of the machine affects all of them."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

Times = dict[str, list[float]]


def rounds(names: Sequence[str], repetitions: Mapping[str, int]) -> Iterator[str]:
    """Names in the order to run: in turn, and each round begins with another name.

    >>> list(rounds(["a", "b"], {"a": 2, "b": 1}))
    ['a', 'b', 'a']
    """
    for turn in range(max(repetitions.values(), default=0)):
        start = turn % len(names)
        for name in [*names[start:], *names[:start]]:
            if turn < repetitions[name]:
                yield name


def interleave(runs: Mapping[str, Callable[[], float]], repetitions: Mapping[str, int]) -> Times:
    """Call the runs in rounds. Returns their results (such as milliseconds), by round."""
    times: Times = {name: [] for name in runs}
    for name in rounds(list(runs), repetitions):
        times[name].append(runs[name]())
    return times


def ratio(times: Sequence[float], reference: Sequence[float]) -> float:
    """The median over the rounds of time ÷ reference of the same round.

    >>> ratio([2.0, 30.0], [1.0, 10.0, 7.0])
    2.5
    """
    return statistics.median(t / r for t, r in zip(times, reference, strict=False))
