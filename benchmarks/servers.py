"""Credence beside other servers: one row, 100 samples, JSON, one compute thread each, loopback.

    python -m benchmarks.servers [--install] [--rounds 5] [--seconds 4] [--rates 100 200 400 800]

All serve the same stored model (784-400-400-10) through `BayesianModel.predict`; what differs is
the server. They run one after the other in rounds, each round starting with another; whoever has
no turn is stopped (SIGSTOP), since an idle server may take half a core. Closed loop: 1 and 64
clients. Open loop: requests come at times fixed beforehand, and latency counts from then. Writes
benchmarks/results/servers.json after every turn, prints tables and draws a picture. `--resume`
goes on there, if commit and settings are the same.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from benchmarks import results
from benchmarks.http import artifact
from benchmarks.http.process import Server, running
from benchmarks.http.report import tables
from benchmarks.http.systems import SYSTEMS, Place, System
from benchmarks.http.turn import NotServing, Plan, first_answer, take
from benchmarks.interleaving import rounds
from benchmarks.peers import environments
from benchmarks.pictures import draw_servers

NAME = "servers"
TOLERANCE = 1e-3  # between the probabilities of two servers: the order of float32 sums differs
T = TypeVar("T")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Start all, then take turns; what is measured so far is on disk after each."""
    plan = Plan(arguments.concurrency, arguments.rates, arguments.seconds)
    data = results.resumable(NAME, vars(plan)) if arguments.resume else {}
    data = data or {"machine": results.machine(), "settings": vars(plan), "turns": []}
    data |= {"versions": {}, "absent": {}}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        servers = _start_all(arguments, folder, stack, data)
        done = Counter(turn["system"] for turn in data["turns"])
        repetitions = {name: max(0, arguments.rounds - done[name]) for name in servers}
        for name in rounds(list(servers), repetitions):
            try:
                data["turns"].append(_turn(servers[name], name, plan, arguments.idle))
            except (OSError, NotServing) as error:
                data["absent"][name] = f"{name} failed in its turn: {error}"
            results.save(NAME, data)
            print(f"{name}: turn done", flush=True)
    return data


def _turn(server: Server, name: str, plan: Plan, idle_seconds: float) -> dict[str, Any]:
    """Wake the server, measure it, and stop it again."""
    server.resume()
    try:
        idle = {"system": name, "idle_cores": _idle(server, idle_seconds)}
        return {**idle, **_await(take(server, SYSTEMS[name], plan))}
    finally:
        server.pause()


def _start_all(
    arguments: argparse.Namespace, folder: Path, stack: ExitStack, data: dict[str, Any]
) -> dict[str, Server]:
    """The servers that give the right answer, paused; why the others do not goes into `data`."""
    results.RESULTS.mkdir(exist_ok=True)
    log = results.RESULTS / f"{NAME}.log"
    data_dir = folder / "data"
    place = Place(data_dir, artifact.make(data_dir, log), folder)
    servers: dict[str, Server] = {}
    expected: list[float] = []
    for name in arguments.systems:
        system = SYSTEMS[name]
        try:
            if arguments.install and system.environment is not None:
                print(f"installing {system.environment}", flush=True)
                environments.install(system.environment)
            server, mean = _start(system, place, stack, log)
            expected = expected or mean
            _check(name, mean, expected)
        except (environments.NotInstalled, NotServing) as error:
            data["absent"][name] = str(error)
            continue
        servers[name] = server
        data["versions"][name] = system.version
    return servers


def _start(system: System, place: Place, stack: ExitStack, log: Path) -> tuple[Server, list[float]]:
    folder = place.folder / system.name
    folder.mkdir()
    launch = system.launch(system.python, Place(place.data_dir, place.artifact, folder))
    started = running(launch.command, launch.environment, launch.port, log)
    server = stack.enter_context(started)
    mean = _await(first_answer(server, system))
    server.pause()
    return server, mean


def _check(name: str, mean: list[float], expected: list[float]) -> None:
    """Whether the server has the very same predictor."""
    difference = max(abs(a - b) for a, b in zip(mean, expected, strict=True))
    if difference > TOLERANCE:
        raise NotServing(f"{name} answers otherwise: probabilities differ by {difference:.3g}")


def _idle(server: Server, seconds: float) -> float:
    """Cores that the server takes while nobody asks."""
    time.sleep(1.0)  # what it had put off while it was stopped
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
    parser.add_argument("--seconds", type=float, default=4.0, help="of each run")
    parser.add_argument("--concurrency", nargs="+", type=int, default=[1, 64])
    parser.add_argument(
        "--rates", nargs="+", type=float, default=[50, 100, 200, 400, 600, 800, 1200, 1600]
    )
    parser.add_argument("--idle", type=float, default=10.0, help="seconds of measured idleness")
    parser.add_argument("--install", action="store_true", help="create missing environments")
    parser.add_argument("--resume", action="store_true", help="keep the turns measured so far")
    parser.add_argument("--picture", type=Path, default=results.RESULTS / f"{NAME}.png")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # unwinds, and so stops the servers
    data = run(arguments)
    print(f"\n{tables(data)}\n")
    draw_servers(data, arguments.picture)
    print(f"{results.RESULTS / NAME}.json, {arguments.picture}")


if __name__ == "__main__":
    main()
