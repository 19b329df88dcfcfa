"""The engine compared with other libraries: milliseconds for B rows and S samples.

    python -m benchmarks.libraries [--install] [--rows 1 32 256] [--samples 1 10 100 1000]

Every library runs in its own process and environment, with the same number of threads. They take
turns call by call. A ratio is the median over the turns of its time ÷ ours. Writes
benchmarks/results/libraries.json after every cell, prints tables and draws a picture. `--resume`
continues from that file if commit and settings are the same. Without `--install`, libraries without
an environment are skipped with a message.
"""

import argparse
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.interleaving import Times, interleave, ratio
from benchmarks.peers.environments import NotInstalled, install
from benchmarks.peers.process import PEERS, Child, PeerFailed, running
from benchmarks.pictures import draw_libraries

NAME = "libraries"
NETWORKS = ("784-1200-1200-10", "13-50-50-2")
OURS = "credence"
BLOCK_MS = (
    100.0  # short calls are repeated for this time per turn, because caches are cold at first
)
MAX_CALLS = 20
GRACE_SECONDS = 60.0


@dataclass(frozen=True)
class Cell:
    """The rows, samples and network of one measurement."""

    network: str
    rows: int
    samples: int


@dataclass(frozen=True)
class Limits:
    """Limits per library and cell: the number of turns, and their time in all."""

    repetitions: int
    budget_seconds: float

    def turns(self, milliseconds: float) -> int:
        affordable = int(1000 * self.budget_seconds / milliseconds)
        return min(self.repetitions, max(1, affordable))

    def allows(self, milliseconds: float) -> bool:
        return milliseconds <= 1000 * self.budget_seconds


@dataclass
class Measured:
    """Times of a cell, and the reasons for missing ones."""

    times: Times = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def measure(
    children: dict[str, Child], cell: Cell, limits: Limits, predicted: dict[str, float]
) -> Measured:
    """Call each child once untimed, then in turns. Remove children that fail from `children`.

    Args:
        predicted: least milliseconds per call, by child, if known.
    """
    measured = Measured()
    first: dict[str, float] = {}
    for name in list(children):
        if not limits.allows(predicted.get(name, 0.0)):
            measured.skipped[name] = f"predicted {predicted[name] / 1000:.0f} s per call"
            continue
        try:
            first[name] = _call(children[name], cell, 1, limits)
        except PeerFailed as error:
            measured.skipped[name] = str(error)
            del children[name]

    def turn(name: str) -> float:
        calls = max(1, min(MAX_CALLS, int(BLOCK_MS / first[name])))
        return _call(children[name], cell, calls, limits)

    repetitions = {name: limits.turns(ms) for name, ms in first.items()}
    runs = {name: lambda name=name: turn(name) for name in first}
    measured.times = interleave(runs, repetitions)
    return measured


def _call(child: Child, cell: Cell, calls: int, limits: Limits) -> float:
    timeout = calls * (5 * limits.budget_seconds) + GRACE_SECONDS
    return statistics.median(child.run(cell.network, cell.rows, cell.samples, calls, timeout))


def predict(cells: list[dict[str, Any]], cell: Cell) -> dict[str, float]:
    """Least milliseconds per call of libraries that loop over samples, from smaller cells."""
    similar = [c for c in cells if (c["network"], c["rows"]) == (cell.network, cell.rows)]
    predicted: dict[str, float] = {}
    for done in similar:
        scale = cell.samples / done["samples"]
        for name, times in done["times"].items():
            predicted[name] = min(times) * scale
    return {name: ms for name, ms in predicted.items() if PEERS[name].loops}


def tables(data: dict[str, Any]) -> str:
    """Tables of medians, with their ratios to ours."""
    names = sorted(data["versions"], key=list(PEERS).index)
    parts = []
    for network in dict.fromkeys(cell["network"] for cell in data["cells"]):
        rows = [
            [cell["rows"], cell["samples"], *(_entry(cell, name) for name in names)]
            for cell in data["cells"]
            if cell["network"] == network
        ]
        parts.append(f"{network}\n\n{results.markdown(['rows', 'samples', *names], rows)}")
    notes = [f"{name}: {reason}" for name, reason in data["absent"].items()]
    return "\n\n".join([*parts, *notes])


def _entry(cell: dict[str, Any], name: str) -> str:
    times = cell["times"].get(name)
    if times is None:
        return str(cell["skipped"].get(name, "–"))
    median = results.figure(statistics.median(times))
    if name == OURS or OURS not in cell["times"]:
        return median
    return f"{median} (×{results.figure(ratio(times, cell['times'][OURS]), 2)})"


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure the missing cells. Save the results after each cell, for `--resume`."""
    settings = {"threads": arguments.threads, "repetitions": arguments.repetitions}
    data = results.resumable(NAME, settings) if arguments.resume else {}
    data = data or {"machine": results.machine(), "settings": settings, "cells": []}
    data |= {"versions": {}, "absent": {}}
    limits = Limits(arguments.repetitions, arguments.budget)
    cells = [
        Cell(network, rows, samples)
        for network in arguments.networks
        for rows in arguments.rows
        for samples in sorted(arguments.samples)
    ]
    with ExitStack() as stack:
        children = _start(arguments, stack, data)
        for cell in cells:
            if any(_is_same(done, cell) for done in data["cells"]):
                continue
            measured = measure(children, cell, limits, predict(data["cells"], cell))
            data["cells"].append({**vars(cell), **vars(measured)})
            results.save(NAME, data)
            print(f"{cell.network} rows {cell.rows} samples {cell.samples}: done", flush=True)
    return data


def _start(
    arguments: argparse.Namespace, stack: ExitStack, data: dict[str, Any]
) -> dict[str, Child]:
    """Start the installed libraries. Note in `data` why others are missing."""
    log = results.RESULTS / f"{NAME}.log"
    log.parent.mkdir(exist_ok=True)
    children = {}
    for name in arguments.peers:
        peer = PEERS[name]
        try:
            if arguments.install and peer.environment is not None:
                print(f"installing {peer.environment}", flush=True)
                install(peer.environment)
            children[name] = stack.enter_context(running(peer, arguments.threads, log))
            data["versions"][name] = children[name].versions
        except (NotInstalled, PeerFailed) as error:
            data["absent"][name] = str(error)
    return children


def _is_same(done: dict[str, Any], cell: Cell) -> bool:
    return all(done[key] == value for key, value in vars(cell).items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 32, 256])
    parser.add_argument("--samples", nargs="+", type=int, default=[1, 10, 100, 1000])
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds per library and cell")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--install", action="store_true", help="create missing environments")
    parser.add_argument("--resume", action="store_true", help="keep the cells measured so far")
    parser.add_argument("--picture", type=Path, default=results.RESULTS / f"{NAME}.png")
    arguments = parser.parse_args()
    data = run(arguments)
    print(f"\n{tables(data)}\n")
    draw_libraries(data, arguments.picture)
    print(f"{results.RESULTS / NAME}.json, {arguments.picture}")


if __name__ == "__main__":
    main()
