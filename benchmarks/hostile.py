"""200 hostile clients of unlike kinds beside a polite one.

    python -m benchmarks.hostile [--seconds 30] [--clients 200]

`credence api` runs with one compute thread, keys and a small model; without a worker, so that the
job of the event streams stays queued. Over loopback, in processes of their own, a polite client
sends single rows with 100 samples, one after the other, with a pause; one asks /health/live; one
sends wrong keys. First without, then beside `benchmarks.hostile_clients`. Prints two tables in
Markdown; writes benchmarks/results/hostile.json. Takes a minute and a half.
"""

import argparse
import asyncio
import http.client
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks import results
from benchmarks.attacks import Memory
from benchmarks.hostile_clients import ROW, Door, Seen, attack, bomb, kinds, upload
from benchmarks.http.artifact import wait_until_ready
from benchmarks.http.load import percentile
from benchmarks.http.process import Server, free_ports, running
from core.access.keys import Keys, Scope
from core.context import open_context
from core.settings import load_settings
from tests.app.running import publish, regression_columns

NAME = "hostile"
MEMORY_BYTES = 2 * 2**30
PAUSE_SECONDS = 0.02
PROCESSES = 4  # polite, live, wrong key, and all hostile ones
STREAMS = "event streams, not read"
POLITE = {"model": "price", "inputs": [ROW], "samples": 100}
Answers = Sequence[tuple[int, float]]
"""Statuses and seconds."""


@dataclass(frozen=True)
class Asking:
    """A client that sends one request again and again."""

    port: int
    key: str
    path: str
    body: bytes | None = None

    def answers(self, seconds: float) -> Answers:
        """What it is answered, for some seconds; status 0 is a lost connection."""
        connection, found = http.client.HTTPConnection("127.0.0.1", self.port, 60), []
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        until = time.perf_counter() + seconds
        while (started := time.perf_counter()) < until:
            try:
                method = "GET" if self.body is None else "POST"
                connection.request(method, self.path, self.body, headers)
                response = connection.getresponse()
                response.read()
                status = response.status
            except (OSError, http.client.HTTPException):
                connection.close()
                status = 0
            found.append((status, time.perf_counter() - started))
            time.sleep(PAUSE_SECONDS)
        return found


def run(seconds: float, clients: int) -> dict[str, Any]:
    """Both measurements, one after the other, on one service."""
    bodies = {"bomb": bomb(), "upload": upload()}
    names = list(kinds(bodies))
    with (
        ProcessPoolExecutor(PROCESSES, get_context("fork")) as pool,  # forked before any thread
        _started(pool),
        serving([*names, "polite"]) as (server, keys),
    ):
        job = queued_job(server.port, keys[STREAMS])
        doors = {name: Door(server.port, keys[name], job) for name in names}
        polite = Asking(server.port, keys["polite"], "/predict", json.dumps(POLITE).encode())
        asking = {
            "polite": polite,
            "live": Asking(server.port, "", "/health/live"),
            "wrong key": Asking(server.port, "a-wrong-key-of-some-length", "/models"),
        }
        polite.answers(2.0)  # loads the model
        memory = Memory(psutil.Process(server.tree()[0].pid))
        quiet = _together(pool, asking, seconds)
        attacked = pool.submit(_attack, doors, bodies, clients, seconds + 2)
        time.sleep(1)
        beside = _together(pool, asking, seconds)
        seen = attacked.result()
        memory.stop()
    return {
        "machine": results.machine(),
        "clients": clients,
        "seconds": seconds,
        "quiet": quiet,
        "beside": beside,
        "hostile": {name: _summary(one) for name, one in seen.items()},
        "memory": {"before": memory.before, "most": memory.most, "limit": MEMORY_BYTES},
    }


@contextmanager
def _started(pool: ProcessPoolExecutor) -> Iterator[None]:
    """All processes of the pool run."""
    list(pool.map(time.sleep, [0.2] * PROCESSES))
    yield


@contextmanager
def serving(names: Sequence[str]) -> Iterator[tuple[Server, Mapping[str, str]]]:
    """A service, and the key of an owner for each name."""
    results.RESULTS.mkdir(exist_ok=True)
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        data_dir = Path(folder) / "data"
        keys = prepare(data_dir, names)
        command = [sys.executable, "-P", "-m", "credence", "api", "--port", str(port)]
        environment = {"CREDENCE_THREADS": "1", "CREDENCE_MEMORY_BYTES": str(MEMORY_BYTES)}
        environment["CREDENCE_DATA_DIR"] = str(data_dir)
        with running(command, environment, port, results.RESULTS / f"{NAME}.log") as server:
            wait_until_ready(f"http://127.0.0.1:{port}")
            yield server, keys


def prepare(data_dir: Path, names: Sequence[str]) -> dict[str, str]:
    """Make a model that is everybody's, and a key for each name."""
    context = open_context(load_settings(data_dir=data_dir))
    try:
        publish(context, "price", regression_columns(), target="price")
        keys = Keys(context.database)
        return {
            name: keys.create(name, Scope.TRAIN, owner=f"owner-{number}")[1]
            for number, name in enumerate(names)
        }
    finally:
        context.close()


def queued_job(port: int, key: str) -> str:
    """A job that nobody takes."""
    data = {"columns": {"x": list(range(30)), "y": list(range(30))}}
    train = {"model": "line", "target": "y", "data": data}
    headers = {"Authorization": f"Bearer {key}"}
    made = httpx.post(f"http://127.0.0.1:{port}/train", json=train, headers=headers, timeout=60)
    return str(made.raise_for_status().json()["id"])


def _together(
    pool: ProcessPoolExecutor, asking: Mapping[str, Asking], seconds: float
) -> dict[str, dict[str, Any]]:
    """What each client sees while the others ask, too."""
    futures = {name: pool.submit(one.answers, seconds) for name, one in asking.items()}
    return {name: _times(future.result()) for name, future in futures.items()}


def _attack(
    doors: Mapping[str, Door], bodies: Mapping[str, bytes], clients: int, seconds: float
) -> dict[str, Seen]:
    return asyncio.run(attack(doors, bodies, clients, seconds))


def _times(answers: Answers) -> dict[str, Any]:
    statuses = Counter(status for status, _ in answers)
    seconds = [took for _, took in answers]
    found = {name: 1000 * percentile(seconds, q) for name, q in (("p50", 0.5), ("p99", 0.99))}
    return {"statuses": dict(statuses), "most": 1000 * max(seconds)} | found


def _summary(seen: Seen) -> dict[str, Any]:
    refused = [1000 * percentile(seen.refused, q) for q in (0.5, 0.99)] if seen.refused else []
    return {"statuses": dict(seen.statuses), "refused_ms": refused}


def tables(data: dict[str, Any]) -> str:
    """The tables of docs/security.md: who asks, and who attacks."""

    def counts(statuses: Mapping[int, int]) -> str:
        return ", ".join(f"{n} × {status}" for status, n in sorted(statuses.items())) or "–"

    def times(name: str, when: str) -> list[str]:
        one = data[when][name]
        return [counts(one["statuses"]), *(f"{one[key]:.0f}" for key in ("p50", "p99", "most"))]

    asked = [(name, when, *times(name, when)) for name in data["quiet"] for when in WHEN]
    hostile = [
        (name, counts(one["statuses"]), " / ".join(f"{ms:.0f}" for ms in one["refused_ms"]) or "–")
        for name, one in data["hostile"].items()
    ]
    memory = {name: round(value / 1e6) for name, value in data["memory"].items()}
    held = (
        f"Memory: {memory['before']} MB before, {memory['most']} MB at most; the budget is "
        f"{memory['limit']} MB. Load of the machine: {data['machine']['load_1_min']:.0f}."
    )
    of_asked = results.markdown(("", "", "answers", "p50, ms", "p99, ms", "most, ms"), asked)
    of_hostile = results.markdown(("hostile", "answers", "refused: p50 / p99, ms"), hostile)
    return "\n\n".join((of_asked, of_hostile, held))


WHEN = ("quiet", "beside")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="of each measurement")
    parser.add_argument("--clients", type=int, default=200)
    arguments = parser.parse_args()
    data = run(arguments.seconds, arguments.clients)
    results.save(NAME, data)
    print(tables(data))


if __name__ == "__main__":
    main()
