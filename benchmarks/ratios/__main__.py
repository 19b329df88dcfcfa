"""Ratios that must not become worse: our time ÷ a reference's, in interleaved runs.

    python -m benchmarks.ratios             # measures, writes results/ratios.json
    python -m benchmarks.ratios --compare   # exit code 1 if one is a third worse than released.json
    python -m benchmarks.ratios --release   # measures, writes released.json: with every release

The reference of a prediction is plain sampling in a few lines of torch (`plain.py`), of a training
step that of a deterministic network, of a request the same prediction without a service. So ratios
say little about the machine; only the same kind of processor is compared. What is a third worse is
measured again, three times in all, and the best of them counts.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from functools import partial

from benchmarks import results
from benchmarks.ratios import comparison
from benchmarks.ratios.comparison import RELEASED, Ratios
from benchmarks.ratios.engine import networks, tables
from benchmarks.ratios.measurement import Group, measure
from benchmarks.ratios.service import requests
from benchmarks.ratios.training import steps

GROUPS: tuple[Group, ...] = (networks, tables, requests, steps)  # the last changes the process


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--compare", action="store_true", help="with the last release")
    choice.add_argument("--release", action="store_true", help="keep as those of a release")
    arguments = parser.parse_args()
    before = comparison.released()
    now = measured(before if arguments.compare else {})
    results.save("ratios", comparison.content(now))
    print(comparison.table(now, before))
    if arguments.release:
        content = json.dumps(comparison.content(now), indent=1)
        RELEASED.write_text(content + "\n", encoding="utf-8")
    elif arguments.compare and comparison.is_same_processor():
        sys.exit(verdict(now, before))
    elif arguments.compare:
        print("The last release was measured on another processor: nothing is compared.")


def measured(before: Mapping[str, float]) -> Ratios:
    """All ratios; those that are a third worse than before are the best of three tries."""
    now: Ratios = {}
    for group in GROUPS:
        first = measure(group)
        now |= comparison.best_of_tries(first, before, partial(measure, group))
    return now


def verdict(now: Ratios, before: Ratios) -> str | None:
    """What is wrong; None if nothing is."""
    if names := comparison.difference(now, before):
        command = "python -m benchmarks.ratios --release"
        return f"{RELEASED.name} and the benchmark differ in {', '.join(names)}: run {command}"
    if names := comparison.worse(now, before):
        return f"a third worse than the last release in three tries: {', '.join(names)}"
    return None


if __name__ == "__main__":
    main()
