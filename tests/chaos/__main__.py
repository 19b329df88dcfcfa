"""`python -m tests.chaos --schedules 1000 --minutes 60 --seed 0`: random schedules, and a summary.

The first schedule that breaks a promise ends the run with exit code 1 and the line that repeats it.
"""

import argparse
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path
from queue import Empty, Queue

from tests.chaos.cradle import Cradle
from tests.chaos.faults import FAULTS
from tests.chaos.invariants import orphans
from tests.chaos.schedule import Outcome, Schedule
from tests.chaos.world import World, remove
from tests.core.postgresql import PostgresServer, postgresql_server

SHARED = 10  # schedules of one world, which costs as much as several of them
INSTALLATIONS = ("servers", "files", "replicas", "servers", "serve", "files", "servers", "replicas")
"""By the tens of the seed: PostgreSQL and Redis, SQLite and a folder, the same with two APIs, or
`credence serve`, whose worker takes the longest to start."""


@dataclass(frozen=True)
class Order:
    """Which seeds, until when, in how many lanes."""

    seed: int
    schedules: int
    seconds: float
    lanes: int

    def worlds(self) -> Iterator[range]:
        """The seeds of each world, in order."""
        end = self.seed + self.schedules
        for world in range(self.seed // SHARED, (end - 1) // SHARED + 1):
            yield range(max(self.seed, world * SHARED), min(end, (world + 1) * SHARED))


def outcomes(order: Order) -> Iterator[Outcome]:
    """Those of all schedules, as they end; after the first that is wrong no other begins.

    Lanes are processes with a cradle and servers of their own. Most of a schedule is waiting, for
    leases above all, so there may be more lanes than cores.
    """
    context = multiprocessing.get_context("fork")  # nothing is imported again
    found, taken, broken = context.Queue(), context.Value("i", 0), context.Event()
    lanes = [
        context.Process(target=_lane, args=(order, taken, found, broken), daemon=True)
        for _ in range(order.lanes)
    ]
    for lane in lanes:
        lane.start()
    while any(lane.is_alive() for lane in lanes) or not found.empty():
        with suppress(Empty):
            outcome = found.get(timeout=1)
            if outcome.wrong:
                broken.set()
            yield outcome


def _lane(order: Order, taken: "Synchronized[int]", found: "Queue[Outcome]", broken: Event) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leaves the blocks, which stop all
    deadline = time.monotonic() + order.seconds

    def is_over() -> bool:
        return broken.is_set() or time.monotonic() > deadline

    with ExitStack() as stack:
        cradle = stack.enter_context(Cradle())
        postgresql = stack.enter_context(postgresql_server())
        for seeds in _left(order, taken):
            for outcome in _in_one_world(seeds, cradle, postgresql, is_over):
                found.put(outcome)
                if outcome.wrong:
                    return
            if is_over():
                return


def _left(order: Order, taken: "Synchronized[int]") -> Iterator[range]:
    """Worlds that no other lane has taken: some kinds need twice as long as others."""
    worlds = list(order.worlds())
    while True:
        with taken.get_lock():
            number, taken.value = taken.value, taken.value + 1
        if number >= len(worlds):
            return
        yield worlds[number]


def _in_one_world(
    seeds: range, cradle: Cradle, postgresql: PostgresServer, is_over: Callable[[], bool]
) -> Iterator[Outcome]:
    """A schedule for each seed, until it is over; the folder stays if something was wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"credence-chaos-{seeds[0]}-"))
    kind = INSTALLATIONS[seeds[0] // SHARED % len(INSTALLATIONS)]
    wrong = False
    with World(
        folder / "world",
        cradle,
        postgresql if kind == "servers" else None,
        serve=kind == "serve",
        num_replicas=2 if kind == "replicas" else 1,
    ) as world:
        for seed in seeds:
            outcome = Schedule(world, seed).run()
            is_last = seed == seeds[-1] or is_over()
            if is_last:
                world.kill_all()
            if is_last and not outcome.wrong:
                outcome.wrong += orphans(world.context)
            outcome.kind, wrong = kind, bool(outcome.wrong)
            if wrong:
                outcome.again = _again(seeds[0], seed, folder)
            yield outcome
            if wrong or is_last:
                break
    if not wrong:
        remove(folder)


def _again(first: int, seed: int, folder: Path) -> str:
    count = seed - first + 1
    return f"see {folder}; again: python -m tests.chaos --seed {first} --schedules {count}"


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
