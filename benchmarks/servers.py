"""Credence compared with other servers: one row, 100 samples, JSON, one compute thread, loopback.

    python -m benchmarks.servers [--install] [--rounds 5] [--seconds 4] [--rates 100 200 400 800]

All serve the same stored model (784-400-400-10) through `TabularModel.predict`; only the servers
differ. They take turns in rounds, and each round starts with another server. Every turn starts the
server anew, because an idle one may use a fifth of a core, and one that adapts to overload stays
slow afterwards. Closed loop: 1 and 64 clients. Open loop: requests have fixed due times, and
latency counts from these. Writes benchmarks/results/servers.json after every turn, prints tables
and draws a picture. `--resume` continues from that file if commit and settings are the same.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from benchmarks import results
from benchmarks.http import artifact
from benchmarks.http.process import Server, running
from benchmarks.http.report import tables
from benchmarks.http.systems import SYSTEMS, Place, System
from benchmarks.http.turn import NotServing, Plan, first_response, take
from benchmarks.interleaving import rounds
from benchmarks.peers import environments
from benchmarks.pictures import draw_servers
from models.prediction.compiled.compiler import compiler

NAME = "servers"
TOLERANCE = 1e-3  # between probabilities of two servers, whose float32 sums may differ in order
T = TypeVar("T")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run all turns; save the results after each."""
    plan = Plan(arguments.concurrency, arguments.rates, arguments.seconds)
    data = results.resumable(NAME, vars(plan)) if arguments.resume else {}
    data = data or {"machine": results.machine(), "settings": vars(plan), "turns": []}
    data |= {"versions": {}, "absent": {}}
    names = _installed(arguments, data)
    done = Counter(turn["system"] for turn in data["turns"])
    repetitions = {name: max(0, arguments.rounds - done[name]) for name in names}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        bench = _Bench.make(Path(folder), plan, arguments.idle)
        for name in rounds(names, repetitions):
            if name in data["absent"]:
                continue
            try:
                data["turns"].append(bench.turn(SYSTEMS[name]))
                print(f"{name}: turn done", flush=True)
            except (OSError, NotServing) as error:
                data["absent"][name] = f"failed in a turn: {error}"
            results.save(NAME, data)
    return data


def _installed(arguments: argparse.Namespace, data: dict[str, Any]) -> list[str]:
    """The installed systems. Note in `data` why others are missing."""
    names = []
    for name in arguments.systems:
        system = SYSTEMS[name]
        try:
            if arguments.install and system.environment is not None:
                print(f"installing {system.environment}", flush=True)
                environments.install(system.environment)
            data["versions"][name] = system.version if system.python else ""
            names.append(name)
        except environments.NotInstalled as error:
            data["absent"][name] = str(error)
    return names


@dataclass
class _Bench:
    """What all turns share: the model, the plan and the expected response."""

    place: Place
    log: Path
    plan: Plan
    idle_seconds: float
    expected: list[float] = field(default_factory=list)

    @classmethod
    def make(cls, folder: Path, plan: Plan, idle_seconds: float) -> "_Bench":
        results.RESULTS.mkdir(exist_ok=True)
        log = results.RESULTS / f"{NAME}.log"
        data_dir = folder / "data"
        compiler().wait()  # or the first turns would compile kernels beside their requests
        return cls(Place(data_dir, artifact.make(data_dir, log), folder), log, plan, idle_seconds)

    def turn(self, system: System) -> dict[str, Any]:
        """Start a server, check its response, measure it, and stop it.

        Raises:
            NotServing, OSError: its response is missing or differs from the first server's.
        """
        with tempfile.TemporaryDirectory(dir=self.place.folder) as folder:
            place = replace(self.place, folder=Path(folder))
            launch = system.launch(system.python, place)
            with running(launch.command, launch.environment, launch.port, self.log) as server:
                mean = _await(first_response(server, system))
                self.expected = self.expected or mean
                _check(system.name, mean, self.expected)
                idle = {"system": system.name, "idle_cores": _idle(server, self.idle_seconds)}
                return {**idle, **_await(take(server, system, self.plan))}


def _check(name: str, mean: list[float], expected: list[float]) -> None:
    """Raise `NotServing` if the means differ by more than `TOLERANCE`."""
    difference = max(abs(a - b) for a, b in zip(mean, expected, strict=True))
    if difference > TOLERANCE:
        raise NotServing(
            f"{name}: its probabilities differ by {difference:.3g} from the first server's"
        )


def _idle(server: Server, seconds: float) -> float:
    """Processor cores that the idle server uses."""
    time.sleep(1.0)  # until the start is over
    before, started = server.cpu_seconds(), time.monotonic()
    time.sleep(seconds)
    return (server.cpu_seconds() - before) / (time.monotonic() - started)


def _await(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="duration of each run")
    parser.add_argument("--concurrency", nargs="+", type=int, default=[1, 64])
    parser.add_argument(
        "--rates", nargs="+", type=float, default=[50, 100, 200, 400, 600, 800, 1200, 1600]
    )
    parser.add_argument("--idle", type=float, default=10.0, help="seconds of idle measurement")
    parser.add_argument("--install", action="store_true", help="create missing environments")
    parser.add_argument("--resume", action="store_true", help="keep the turns measured so far")
    parser.add_argument("--picture", type=Path, default=results.RESULTS / f"{NAME}.png")
    arguments = parser.parse_args()
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # leaves the `with` blocks, which stop the servers
    data = run(arguments)
    print(f"\n{tables(data)}\n")
    draw_servers(data, arguments.picture)
    print(f"{results.RESULTS / NAME}.json, {arguments.picture}")


if __name__ == "__main__":
    main()
