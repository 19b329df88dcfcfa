"""Microseconds of each stage of a prediction request, for one client and for 64.

    python -m benchmarks.request_path [--seconds 4] [--network 13-50-50-2]

One row, 100 samples, JSON, one compute thread, logs as JSON to a file. The service runs as always,
with timers around the functions of the stages. Times are means per request, by the clock: with many
clients they contain waiting for the interpreter's lock, and `queue` waiting for other requests.
"""

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from threading import Event
from time import perf_counter
from typing import Any

from app.http import bodies, direct_path
from app.main import create_app
from app.metrics.metrics import Metrics
from app.routers import predictions
from app.serving import admission, json_format, model_cache, predictor, resolutions, versions
from app.serving.engine import Engine
from benchmarks import results
from benchmarks.http.artifact import wait_until_ready
from benchmarks.http.connection import Client
from benchmarks.http.generator import closed_loop
from benchmarks.http.process import free_ports, running
from benchmarks.replica import publish, requests_for
from benchmarks.shapes import Shape
from core.process.long_lived import keep_present_objects
from core.settings import load_settings
from core.telemetry.logging import configure_logging
from credence.serving.api_thread import ApiThread
from credence.serving.listener import listen
from models.prediction.compiled.compiler import compiler
from models.tabular.model import TabularModel

CLIENTS = (1, 64)
WHOLE, OTHER, OUTSIDE = "all of these", "other: key, headers, contexts", "outside: HTTP, sockets"
STAGES = (
    "read",
    "parse",
    "validate",
    "find version and model",
    "resolve options",
    "admission",
    "decode",
    "queue",
    "compute",
    "wake-up",
    "reasons",
    "encode",
    "write",
    "metrics",
    "log",
)


class Timers:
    """Sums the seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def around(self, owner: Any, name: str, stage: str) -> None:
        """Time a function or coroutine function, an attribute or a dictionary's value."""
        work = owner[name] if isinstance(owner, dict) else getattr(owner, name)
        make = self._timed_coroutine if iscoroutinefunction(work) else self._timed
        timed = make(work, stage)
        if isinstance(owner, dict):
            owner[name] = timed
        else:
            setattr(owner, name, timed)

    def _timed(self, work: Callable[..., Any], stage: str) -> Callable[..., Any]:
        @wraps(work)
        def timed(*args: Any, **kwargs: Any) -> Any:
            started = perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                self.seconds[stage] += perf_counter() - started

        return timed

    def _timed_coroutine(self, work: Callable[..., Any], stage: str) -> Callable[..., Any]:
        @wraps(work)
        async def timed(*args: Any, **kwargs: Any) -> Any:
            started = perf_counter()
            try:
                result = await work(*args, **kwargs)
            finally:
                self.seconds[stage] += perf_counter() - started
            if stage == "wake-up":  # of `Engine.compute`: without queue and compute
                parts = {"queue": result.queue_seconds, "compute": result.compute_seconds}
                self.seconds.update(parts)
                self.seconds[stage] -= sum(parts.values())
            if stage == WHOLE:
                self.seconds["requests"] += 1
            return result

        return timed


def functions() -> tuple[tuple[Any, str, str], ...]:
    """What is timed: a module, a class or a dictionary, the name in it, and its stage."""
    return (
        (bodies, "read_bytes", "read"),
        (json_format, "parse", "parse"),
        (json_format, "validate_again", "validate"),
        (versions.VersionLookup, "find", "find version and model"),
        (model_cache.ModelCache, "get", "find version and model"),
        (resolutions.Resolutions, "find", "resolve options"),
        (admission.Admission, "_check", "admission"),
        (admission.Admission, "_count", "admission"),
        (predictor.Predictor, "encode", "decode"),
        (Engine, "compute", "wake-up"),
        (TabularModel, "with_reasons", "reasons"),
        (predictions.WRITERS, predictions.JSON, "encode"),
        (direct_path.Response, "__call__", "write"),
        (Metrics, "observe_prediction", "metrics"),
        (direct_path, "end_request", "log"),
        (direct_path.DirectPath, "__call__", WHOLE),
    )


def serve(port: int, data_dir: Path, out: Path) -> None:
    """Serve with timers. SIGUSR1 sets them to 0, SIGTERM writes them and ends the process."""
    timers = Timers()
    for owner, name, stage in functions():
        timers.around(owner, name, stage)
    configure_logging("json", "info")
    stopped = Event()
    signal.signal(signal.SIGUSR1, lambda *_: timers.seconds.clear())
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    api = ApiThread(
        create_app(load_settings(data_dir=data_dir, threads=1)), listen("127.0.0.1", port), 5
    )
    api.start()
    compiler().wait()
    keep_present_objects()
    stopped.wait()
    out.write_text(json.dumps(timers.seconds))
    api.stop()
    api.join(5.0)


def measure(data_dir: Path, network: str, clients: int, seconds: float) -> dict[str, float]:
    """Microseconds per request by stage."""
    (port,) = free_ports(1)
    log, out = data_dir.parent / "log", data_dir.parent / f"{clients}.json"
    arguments = ["--serve", str(port), str(data_dir), str(out)]
    command = [sys.executable, "-m", "benchmarks.request_path", *arguments]
    with running(command, {}, port, log) as server:
        wait_until_ready(f"http://127.0.0.1:{port}")
        requests = requests_for(network, Shape.parse(network), 1)

        async def load() -> float:
            client = Client(port)
            await closed_loop(client, requests, clients, 1.0)
            server.tree()[0].send_signal(signal.SIGUSR1)
            summary = await closed_loop(client, requests, clients, seconds)
            await client.close()
            return clients / summary.throughput  # the mean latency (Little's law)

        latency = asyncio.run(load())
    found = Counter(json.loads(out.read_text()))
    number = found.pop("requests")
    each = {stage: 1e6 * found[stage] / number for stage in (*STAGES, WHOLE)}
    each[OTHER] = each[WHOLE] - sum(each[stage] for stage in STAGES)
    return each | {OUTSIDE: 1e6 * latency - each[WHOLE]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--network", default="13-50-50-2")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        port, data_dir, out = arguments.serve
        serve(int(port), Path(data_dir), Path(out))
        return
    with tempfile.TemporaryDirectory() as name:
        data_dir, network = Path(name) / "data", arguments.network
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "credence", "serve", "--port", str(port)]
        environment = {"CREDENCE_WORKER_METRICS_PORT": "0"}
        log = Path(name) / "log"
        with running([*command, "--data-dir", str(data_dir)], environment, port, log):
            wait_until_ready(f"http://127.0.0.1:{port}")
            publish(port, network, Shape.parse(network))
        compiler().wait()  # before a service would compile kernels beside its requests
        found = {n: measure(data_dir, network, n, arguments.seconds) for n in CLIENTS}
    results.save("request_path", {"machine": results.machine(), "microseconds": found})
    rows = (*STAGES, OTHER, WHOLE, OUTSIDE)
    lines = [[stage, *(results.figure(found[n][stage], 2) for n in CLIENTS)] for stage in rows]
    print(results.markdown(["stage, µs per request", "1 client", "64 clients"], lines))


if __name__ == "__main__":
    main()
