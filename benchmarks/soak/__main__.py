"""Hours of mixed work on a real service: memory, threads, files, disk and latency stay as they are.

    python -m benchmarks.soak [--hours 2] [--rate 5] [--percent 20]

A real `credence serve` in a temporary folder, with one compute thread, gets predictions (JSON,
Arrow, /v2), trainings, uploads, labels, streams of events and mistakes over loopback; clients
delete what they made. Prints two tables in Markdown; writes benchmarks/results/soak.json. Ends with
exit code 1 if something grows by more than `--percent` in a day, a response was wrong, or the
worker was started again.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import results
from benchmarks.http.artifact import wait_until_ready
from benchmarks.http.process import free_ports, running
from benchmarks.soak.actions import PATIENCE_SECONDS, Caller, make_steady
from benchmarks.soak.load import Load, Tally
from benchmarks.soak.observations import Observer, Series
from benchmarks.soak.report import leaks, plain, table, trends
from benchmarks.soak.slopes import Trend

NAME = "soak"
WARM_UP_SECONDS = 600.0  # kernels are compiled, windows and pools fill; of short runs a third
SETTINGS = {
    "CREDENCE_WORKER_METRICS_PORT": "0",
    "CREDENCE_THREADS": "1",
    "CREDENCE_FEEDBACK_ROWS": "100",  # the window is full within the warm-up
}


@dataclass(frozen=True)
class Soaked:
    """The outcome of a run."""

    series: Series
    trends: Mapping[str, Trend]
    tally: Tally
    failures: list[str]  # of probes, and of the worker
    minutes: float

    def faults(self, percent: float) -> list[str]:
        """All for which the run fails, in words."""
        grown = [f"{name} grows" for name in leaks(self.trends, percent)]
        return [*grown, *self.failures, *self.tally.wrong]


def soak(folder: Path, seconds: float, rate: float, warm_up: float) -> Soaked:
    """Start a service with its data and its log in the folder, and work on it for so long."""
    (port,) = free_ports(1)
    data_dir, url = folder / "data", f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "credence", "serve", "--port", str(port)]
    command += ["--data-dir", str(data_dir)]
    with running(command, SETTINGS, port, folder / "service.log") as server:
        wait_until_ready(url, PATIENCE_SECONDS)
        first = Caller(url, seed=-1)
        with first.http:
            make_steady(first)
        with Load(url, rate) as load, Observer(server, data_dir) as observer:
            time.sleep(seconds)
    failures = list(observer.failed)
    if len(observer.workers) > 1:
        failures.append(f"the worker was started {len(observer.workers) - 1} times again")
    series = observer.series
    return Soaked(series, trends(series, warm_up), load.tally, failures, seconds / 60)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--rate", type=float, default=5.0, help="actions per second")
    parser.add_argument("--percent", type=float, default=20.0, help="growth in a day that fails")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leaves the blocks, which stop all
    seconds = 3600 * options.hours
    results.RESULTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        run = soak(Path(folder), seconds, options.rate, min(WARM_UP_SECONDS, seconds / 3))
        log = (Path(folder) / "service.log").read_bytes()
        (results.RESULTS / f"{NAME}.log").write_bytes(log)
    faults = run.faults(options.percent)
    data = {"machine": results.machine(), "minutes": run.minutes, "rate": options.rate}
    data |= {"trends": plain(run.trends), "faults": faults, "series": asdict(run.series)}
    results.save(NAME, data)
    print(table(run.trends, options.percent))
    print(f"\n{_work(run.tally)}\n")
    print(*(faults or ["nothing grows, nothing was wrong"]), sep="\n")
    return 1 if faults else 0


def _work(tally: Tally) -> str:
    rows = [[name, done, tally.refused[name]] for name, done in sorted(tally.done.items())]
    return results.markdown(["work", "done", "refused"], rows)


if __name__ == "__main__":
    sys.exit(main())
