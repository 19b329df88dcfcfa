"""Seconds from the start of `credence serve` to `ready`, to its end, and back after a kill -9.

    python -m benchmarks.lifecycle [--repetitions 3] [--before /other/checkout/.venv/bin/python]
                                   [--scenarios idle loaded training]

Each round starts a service three times: it is stopped idle, with a model loaded, and while it
trains, after its worker was killed once. With `--before`, rounds of another checkout go in between,
so that both meet the same load, which each line names. Seconds of a busy machine are many times
those of a quiet one; CPU seconds are nearly the same. `docs/reliability.md` uses these figures.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from benchmarks import results
from benchmarks.interleaving import rounds
from core.database.database import opened
from core.jobs.jobs import Event, Jobs
from core.settings import load_settings

READY = "ready on "
MOST_SECONDS = 1200.0
TRAINED_SECONDS = 12.0  # before the kill: after the first checkpoint
COLUMNS = {"x": [i / 100 for i in range(200)], "y": [3 * i / 100 + i % 7 / 50 for i in range(200)]}
SHORT = {"training": {"epochs": 5}, "network": {"hidden": [8]}}
LONG = {"training": {"epochs": 100_000, "patience": 100_000}, "network": {"hidden": [8]}}
ROWS = (
    "start",
    "start, CPU seconds of the API",
    "start, CPU seconds of the worker",
    "stop, idle",
    "stop, idle, CPU seconds",
    "stop, loaded",
    "stop, loaded, CPU seconds",
    "stop, training",
    "stop, training, CPU seconds",
    "kill -9 to the next attempt",
    "kill -9 to its first epoch",
    "seconds of training repeated",
)
Seconds = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--before", help="the Python of another checkout's environment")
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=SCENARIOS)
    arguments = parser.parse_args()
    pythons = {"before": arguments.before, "now": sys.executable}
    names = [name for name, python in pythons.items() if python]
    found: dict[str, list[Seconds]] = {name: [] for name in names}
    for name in rounds(names, dict.fromkeys(names, arguments.repetitions)):
        found[name].append(measure(pythons[name], arguments.scenarios))
        load = os.getloadavg()[0]
        print(f"{name}, load {load:.1f}:", json.dumps(found[name][-1]), flush=True)
    results.save("lifecycle", {"machine": results.machine(), **found})
    print(table(found))


def table(found: dict[str, list[Seconds]]) -> str:
    """Medians of each row, in seconds."""
    lines = [
        [row, *(results.figure(statistics.median(one[row] for one in runs)) for runs in known)]
        for row in ROWS
        if (known := [runs for runs in found.values() if row in runs[0]])
    ]
    return results.markdown(["seconds, median", *found], lines)


def measure(python: str, scenarios: Sequence[str]) -> Seconds:
    """One round."""
    found = Seconds()
    with tempfile.TemporaryDirectory() as folder:
        for scenario in scenarios:
            with serving(python, Path(folder)) as service:
                found |= service.started()
                found |= SCENARIOS[scenario](service)
                wall, cpu = service.stop()
                found |= {f"stop, {scenario}": wall, f"stop, {scenario}, CPU seconds": cpu}
    return {row: round(found[row], 2) for row in ROWS if row in found}


@dataclass(frozen=True)
class Service:
    """A running `credence serve`."""

    process: subprocess.Popen[str]
    url: str
    folder: Path
    start_seconds: float

    def post(self, path: str, body: object) -> dict[str, object]:
        answer = httpx.post(self.url + path, json=body, timeout=MOST_SECONDS)
        answer.raise_for_status()
        return dict(answer.json())

    def train(self, settings: dict[str, object]) -> str:
        """The id of a new training's job."""
        request = {"model": "line", "data": {"columns": COLUMNS}, "target": "y", **settings}
        return str(self.post("/train", request)["id"])

    def events(self, job: str) -> list[Event]:
        settings = load_settings(data_dir=self.folder / "data")
        with opened(settings.sqlalchemy_url) as database:
            return list(Jobs(database).events(job))

    def worker(self) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        (worker,) = [child for child in children if "worker" in child.cmdline()]
        return worker

    def started(self) -> Seconds:
        """What the start took, until both were ready."""
        return {
            "start": self.start_seconds,
            "start, CPU seconds of the API": cpu_seconds(psutil.Process(self.process.pid)),
            "start, CPU seconds of the worker": cpu_seconds(self.worker()),
        }

    def stop(self) -> tuple[float, float]:
        """Seconds and CPU seconds from SIGTERM to the end of the last process."""
        main = psutil.Process(self.process.pid)
        family = [main, *main.children(recursive=True)]
        ended = main.cpu_times()  # of earlier workers
        spent = (
            cpu_seconds(main)
            + cpu_seconds(self.worker())
            + ended.children_user
            + ended.children_system
        )
        spent += sum(os.times()[2:4])  # of services before this one
        begun = time.perf_counter()
        self.process.terminate()
        code = self.process.wait(MOST_SECONDS)
        psutil.wait_procs(family, timeout=MOST_SECONDS)
        assert code == 0, f"exit code {code}: {(self.folder / 'log').read_text()[-2000:]}"
        return time.perf_counter() - begun, sum(os.times()[2:4]) - spent


def cpu_seconds(process: psutil.Process) -> float:
    """Of all its threads."""
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def serving(python: str, folder: Path) -> Iterator[Service]:
    """A service with its data in the folder; killed if it was not stopped."""
    command = [python, "-P", "-m", "credence", "serve", "--port", "0"]
    quiet = {"CREDENCE_WORKER_METRICS_PORT": "0", "NO_COLOR": "1"}
    with (folder / "log").open("a") as log:
        begun = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--data-dir", str(folder / "data")],
            env=os.environ | quiet,
            cwd=folder,  # not in this checkout, whose modules another one's would find
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - begun
        assert line.startswith(READY), f"not ready: {(folder / 'log').read_text()[-2000:]}"
        yield Service(process, line.removeprefix(READY).strip(), folder, seconds)
    finally:
        process.kill()
        process.communicate()


def idle(_: Service) -> Seconds:
    return {}


def load_model(service: Service) -> Seconds:
    """Train a model and predict with it once."""
    job = service.train(SHORT)
    wait(lambda: any(event.data.get("status") == "succeeded" for event in service.events(job)))
    service.post("/predict", {"model": "line", "inputs": [{"x": 0.5}], "samples": 100})
    return {}


def kill_worker(service: Service) -> Seconds:
    """Kill the worker while it trains, and wait until the next one goes on."""
    job = service.train(LONG)
    wait(lambda: any(event.type == "progress" for event in service.events(job)))
    time.sleep(TRAINED_SECONDS)
    worker = service.worker()
    killed = time.perf_counter()
    worker.kill()
    wait(lambda: attempts(service.events(job)) == 2)
    claimed = time.perf_counter() - killed
    wait(lambda: progress_of(service.events(job), 2))
    epoch = time.perf_counter() - killed
    return {
        "kill -9 to the next attempt": claimed,
        "kill -9 to its first epoch": epoch,
        "seconds of training repeated": repeated_seconds(service.events(job)),
    }


def attempts(events: list[Event]) -> int:
    return sum(event.data.get("status") == "running" for event in events)


def progress_of(events: list[Event], attempt: int) -> list[Event]:
    """The reports of one attempt."""
    found, number = [], 0
    for event in events:
        number += event.data.get("status") == "running"
        if event.type == "progress" and number == attempt:
            found.append(event)
    return found


def repeated_seconds(events: list[Event]) -> float:
    """How long the first attempt took for the epochs that the second one repeats."""
    first, second = progress_of(events, 1), progress_of(events, 2)
    begun_again = second[0].data["epoch"]
    known = [event for event in first if event.data["epoch"] >= begun_again]
    return (first[-1].time - known[0].time).total_seconds() if known else 0.0


def wait(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {MOST_SECONDS:g} s"
        time.sleep(0.1)


SCENARIOS: dict[str, Callable[[Service], Seconds]] = {
    "idle": idle,
    "loaded": load_model,
    "training": kill_worker,
}


if __name__ == "__main__":
    main()
