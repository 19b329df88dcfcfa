"""Sets measured ratios beside those of the last release."""

import json
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from benchmarks import results

RELEASED = Path(__file__).with_name("released.json")  # in git, with the machine it was measured on
WORSE = 4 / 3  # of the released ratio: interleaved runs differ by less
TRIES = 3

Ratios = dict[str, float]
Measure = Callable[[Collection[str]], Ratios]


def released(path: Path = RELEASED) -> Ratios:
    """The ratios of the last release."""
    return dict(json.loads(path.read_text(encoding="utf-8"))["ratios"])


def is_same_processor(path: Path = RELEASED) -> bool:
    """Whether the last release was measured on a processor like this one.

    Vector units and caches change ratios by more than a third.
    """
    machine = json.loads(path.read_text(encoding="utf-8"))["machine"]
    here = results.machine()
    return all(machine[name] == here[name] for name in ("processor", "cores"))


def content(ratios: Ratios) -> dict[str, Any]:
    """What a file of ratios holds."""
    return {"machine": results.machine(), "ratios": {n: round(r, 4) for n, r in ratios.items()}}


def best_of_tries(first: Ratios, before: Mapping[str, float], measure: Measure) -> Ratios:
    """The ratios, where those a third worse than before are the best of `TRIES` measurements.

    Args:
        first: the first try, of everything.
        measure: measures these names again.
    """
    best = dict(first)
    for _ in range(TRIES - 1):
        if again := worse(best, before):
            best |= {name: min(best[name], ratio) for name, ratio in measure(again).items()}
    return best


def worse(now: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    """The names whose ratio is a third worse than before. What is new is not worse."""
    return [name for name, ratio in now.items() if ratio > WORSE * before.get(name, math.inf)]


def difference(now: Mapping[str, float], before: Mapping[str, float]) -> list[str]:
    """The names that only one of the two has: the benchmark has changed since the release."""
    return sorted(now.keys() ^ before.keys())


def table(now: Mapping[str, float], before: Mapping[str, float]) -> str:
    """Each ratio beside the last release's."""
    lines = [
        [
            name,
            results.figure(ratio),
            results.figure(before.get(name)),
            results.figure(ratio / before[name], 2) if name in before else "–",
        ]
        for name, ratio in now.items()
    ]
    return results.markdown(["our time ÷ the reference's", "now", "released", "change"], lines)
