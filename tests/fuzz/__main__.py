"""`make fuzz`: every attack, again and again, against a real service with its worker.

Rounds follow each other until the time is up; each has a seed of its own, so that a fault is
repeated by the seed that is printed with it. Exits 1 at the first one.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.app.cards import publish_all
from tests.fuzz import raw
from tests.fuzz.api import attack, operations
from tests.fuzz.bombs import LIMIT, bombs
from tests.fuzz.mutations import explode, sent_mutated
from tests.fuzz.target import Target, attacked

EXAMPLES = 25  # of each operation in a round
MUTATIONS = 10  # of each valid body in a round
PEAK_BYTES = 14 * LIMIT  # JSON of 64 MiB is up to ten times as large once parsed
LIMITS = {"CREDENCE_MAX_BODY_BYTES": str(LIMIT), "CREDENCE_MAX_DATASET_BYTES": str(LIMIT)}


@dataclass
class Report:
    """What was sent, and what came back."""

    answered: Counter[tuple[str, int]] = field(default_factory=Counter)
    peak_bytes: int = 0
    worst_seconds: float = 0.0
    rounds: int = 0

    def print(self) -> None:
        """By route and class of status; refusals by status."""
        routes: dict[str, Counter[str]] = {}
        refusals: Counter[int] = Counter()
        for (route, status), count in sorted(self.answered.items()):
            routes.setdefault(route, Counter())[f"{status // 100}xx"] += count
            refusals[status] += count if status >= 400 else 0
        for route, classes in routes.items():
            print(f"{route:55}", dict(classes))
        print("refusals by status:", {s: n for s, n in sorted(refusals.items()) if n})
        print(f"rounds {self.rounds}, requests {self.answered.total()}")
        print(f"peak memory of the server {self.peak_bytes / 2**20:.0f} MiB")
        print(f"worst time to the next good answer {self.worst_seconds:.2f} s")


def bomb(target: Target, report: Report, seed: int) -> None:
    """Every 32nd bomb, others in the next round; the memory that it took is bounded."""
    for found in list(bombs())[seed % 32 :: 32]:
        grown, status = explode(target, found)
        report.answered[f"bomb {found.name}", status] += 1
        report.peak_bytes = max(report.peak_bytes, target.peak_bytes())
        assert status in found.statuses, f"{found.name}: {status}"
        assert grown < PEAK_BYTES, f"{found.name}: {grown} bytes"


def speak(target: Target, report: Report, _: int) -> None:
    """Bytes that are hardly HTTP; half requests stay open meanwhile."""
    held = [raw.hold(target.url, half) for half in (b"", b"GET /hea", raw.POST)]
    for name, data in raw.REFUSED.items():
        report.answered["raw bytes", raw.refused(target.url, name, data)] += 1
    for connection in held:
        connection.close()


def ask(target: Target, report: Report, seed: int) -> None:
    """Every operation of the document."""
    for operation in operations(target):
        attack(target, operation, EXAMPLES, seed, report.answered)


def damage(target: Target, report: Report, seed: int) -> None:
    """Valid bodies of all content types with bytes changed."""
    for number in range(MUTATIONS):
        for status, count in sent_mutated(target, seed * MUTATIONS + number).items():
            report.answered["damaged bodies", status] += count


ATTACKS: tuple[Callable[[Target, Report, int], None], ...] = (speak, ask, damage, bomb)


def run(target: Target, report: Report, seed: int, seconds: float) -> None:
    """Attack until the time is up; after each attack a prediction must be right."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for step in ATTACKS:
            if time.monotonic() > end:
                return
            print(f"{step.__name__}, seed {seed + report.rounds}", flush=True)
            step(target, report, seed + report.rounds)
            started = time.monotonic()
            assert target.is_well(), f"no good answer after {step.__name__}"
            report.worst_seconds = max(report.worst_seconds, time.monotonic() - started)
            report.peak_bytes = max(report.peak_bytes, target.peak_bytes())
        report.rounds += 1


def main() -> int:
    """Exit code 1 at a violation."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        trained = Path(folder) / "trained"
        attacked_dir = Path(folder) / "attacked"
        for directory in (trained, attacked_dir):
            directory.mkdir()
        publish_all(trained)
        with attacked(trained, attacked_dir, "serve", **LIMITS) as target:
            try:
                run(target, report, options.seed, 60 * options.minutes)
            except BaseException as error:
                seed = options.seed + report.rounds
                print(f"\nFAULT: {error!r}\nrepeat: python -m tests.fuzz --seed {seed}")
                print(*getattr(error, "exceptions", ()), sep="\n")
                print(*getattr(error, "__notes__", ()), sep="\n")
                print(target.service.log_file.read_text()[-4000:])
                report.print()
                return 1
    report.print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
