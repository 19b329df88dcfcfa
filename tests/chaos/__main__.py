"""`python -m tests.chaos --schedules 200 --minutes 20 --seed 0`: random schedules, and a summary.

The first schedule that breaks a promise ends the run with exit code 1 and the line that repeats it.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.chaos.cradle import Cradle
from tests.chaos.schedule import Outcome, Schedule
from tests.chaos.world import World, remove
from tests.core.postgresql import PostgresServer, postgresql_server

INSTALLATIONS = (
    "servers",
    "files",
    "servers",
    "serve",
)  # by seed: PostgreSQL and Redis; or neither


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    deadline, outcomes = time.monotonic() + 60 * options.minutes, []
    with ExitStack() as stack:
        cradle = stack.enter_context(Cradle())
        postgresql = stack.enter_context(postgresql_server())
        for seed in range(options.seed, options.seed + options.schedules):
            if time.monotonic() > deadline:
                break
            outcomes.append(run(seed, cradle, postgresql))
            if outcomes[-1].wrong:
                break
    print(summary(outcomes))  # noqa: T201
    return 1 if outcomes[-1].wrong else 0


def run(seed: int, cradle: Cradle, postgresql: PostgresServer) -> Outcome:
    """One schedule in a new world; its folder stays if something was wrong."""
    folder = Path(tempfile.mkdtemp(prefix=f"credence-chaos-{seed}-"))
    kind = INSTALLATIONS[seed % len(INSTALLATIONS)]
    servers = postgresql if kind == "servers" else None
    with World(folder / "world", cradle, servers, serve=kind == "serve") as world:
        outcome = Schedule(world, seed).run()
    if outcome.wrong:
        print(f"seed {seed} broke, see {folder}:", *outcome.wrong, sep="\n  ")  # noqa: T201
        print(f"again: python -m tests.chaos --schedules 1 --seed {seed}")  # noqa: T201
    else:
        remove(folder)
    done = ", ".join(f"{name} {count}" for name, count in outcome.done.items())
    print(f"seed {seed} ({kind}): {outcome.seconds:.0f} s; {done}", flush=True)  # noqa: T201
    return outcome


def summary(outcomes: Sequence[Outcome]) -> str:
    """A table for the page on reliability."""

    def total(name: str) -> int:
        return sum(outcome.done[name] for outcome in outcomes)

    jobs, answers = Counter[str](), Counter[int]()
    for outcome in outcomes:
        jobs.update(outcome.jobs)
        answers.update(outcome.answers)
    recoveries = [seconds for outcome in outcomes for seconds in outcome.recoveries] or [0.0]
    refused = {status: answers[status] for status in (429, 503)}
    rows = {
        "schedules": len(outcomes),
        "minutes": f"{sum(outcome.seconds for outcome in outcomes) / 60:.1f}",
        "workers killed": total("kill_worker"),
        "workers paused beyond their lease or near it": total("pause_worker"),
        "APIs killed": total("kill_api"),
        "stops of broker, database (where they are servers)": (
            f"{total('stop_broker')}, {total('stop_database')}"
        ),
        "brokers emptied, messages doubled and mixed": (
            f"{total('empty_broker')}, {total('duplicate')}"
        ),
        "clocks set an hour on or back": total("set_clock"),
        "jobs": f"{jobs.total()}: " + ", ".join(f"{n} {s}" for s, n in sorted(jobs.items())),
        "predictions of a loaded model, all equal": sum(o.predicted for o in outcomes),
        "refusals, each with Retry-After": sum(refused.values()),
        "no answer, from an API that was away": answers[0],
        "from a worker's death to the next event of a job, median, worst": (
            f"{statistics.median(recoveries):.1f} s, {max(recoveries):.1f} s"
        ),
        "broken promises": sum(len(outcome.wrong) for outcome in outcomes),
    }
    lines = [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(["| what | how many |", "| --- | ---: |", *lines])


if __name__ == "__main__":
    sys.exit(main())
