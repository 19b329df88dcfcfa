"""`python -m tests.chaos --schedules 1000 --minutes 60 --seed 0`: random schedules, and a summary.

The first schedule that breaks a promise ends the run with exit code 1 and the line that repeats it.
"""

import argparse
import os
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence

from tests.chaos.faults import FAULTS
from tests.chaos.lanes import Order, outcomes
from tests.chaos.schedule import Outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lanes", type=int, default=2 * len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the lanes, too
    began, found = time.monotonic(), []
    order = Order(options.seed, options.schedules, 60 * options.minutes, options.lanes)
    for outcome in outcomes(order):
        found.append(outcome)
        tell(outcome)
    print(summary(found, time.monotonic() - began))  # noqa: T201
    return int(any(outcome.wrong for outcome in found))


def tell(outcome: Outcome) -> None:
    """A line for each schedule; more if something was wrong."""
    done = ", ".join(f"{name} {count}" for name, count in outcome.done.items())
    print(f"seed {outcome.seed} ({outcome.kind}): {outcome.seconds:.0f} s; {done}", flush=True)  # noqa: T201
    if outcome.wrong:
        print(f"seed {outcome.seed} broke, {outcome.again}", *outcome.wrong, sep="\n  ", flush=True)  # noqa: T201


def summary(found: Sequence[Outcome], seconds: float) -> str:
    """Two tables for the page on reliability: the run, and how often each fault was drawn."""
    jobs, answers, done = Counter[str](), Counter[int](), Counter[str]()
    for outcome in found:
        jobs.update(outcome.jobs)
        answers.update(outcome.answers)
        done.update(outcome.done)
    recoveries = [each for outcome in found for each in outcome.recoveries] or [0.0]
    installations = Counter(outcome.kind for outcome in found)
    rows = {
        "schedules": f"{len(found)}: " + ", ".join(f"{n} {k}" for k, n in installations.items()),
        "minutes, schedules a minute": f"{seconds / 60:.1f}, {60 * len(found) / seconds:.1f}",
        "load of the machine at the end": f"{os.getloadavg()[1]:.0f}",
        "jobs": f"{jobs.total()}: " + ", ".join(f"{n} {s}" for s, n in sorted(jobs.items())),
        "predictions of a loaded model, all equal": sum(o.predicted for o in found),
        "refusals, each with Retry-After": answers[429] + answers[503],
        "no answer, from an API that was away": answers[0],
        "from a worker's death to the next event of a job, median, worst": (
            f"{statistics.median(recoveries):.1f} s, {max(recoveries):.1f} s"
        ),
        "broken rules": sum(len(outcome.wrong) for outcome in found),
    }
    drawn = {f"`{name}`": done[name] for name in FAULTS}
    return f"{_table('what', rows)}\n\n{_table('fault, or work', drawn)}"


def _table(head: str, rows: dict[str, object]) -> str:
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join([f"| {head} | how many |", "| --- | ---: |", *lines])


if __name__ == "__main__":
    sys.exit(main())
