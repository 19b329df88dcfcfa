"""Overload of ten times the capacity: responses, refusals and their cost.

    python -m benchmarks.overload [--seconds 10] [--times 10]

A real `credence serve` with one compute thread and the model of `benchmarks.servers`
(784-400-400-10, 100 samples) gets requests over loopback from other processes. The capacity is the
rate of 64 clients in a closed loop. Then requests are sent at a multiple of that rate, in an open
loop. Prints a table in Markdown; writes benchmarks/results/overload.json.
"""

import argparse
import asyncio
import json
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import uvloop

from benchmarks import results
from benchmarks.http import artifact
from benchmarks.http.connection import Client, request_bytes
from benchmarks.http.generator import closed_loop
from benchmarks.http.load import arrivals, percentile
from benchmarks.http.process import ROOT, Server, free_ports, running
from benchmarks.http.systems import INPUTS, MODEL, SYSTEMS

NAME = "overload"
CLIENTS = 64
MAX_CONNECTIONS = 8000  # so many that no request waits in the generator
MEBIBYTE = 2**20
IDLE = 1000  # connections
RECOVERED = 2.0  # times the latency before the overload


def run(seconds: float, times: float) -> dict[str, Any]:
    """Start a server and make all measurements, one after the other."""
    with serving() as server:
        return _measure(server, seconds, times)


def serve() -> None:
    """Start only the server, and print how to load it with another generator."""
    body = results.RESULTS / f"{NAME}.json.body"
    with serving() as server:
        body.write_bytes(_request().partition(b"\r\n\r\n")[2])
        url = f"http://127.0.0.1:{server.port}/predict"
        print(f"hey -c 640 -z 8s -o csv -m POST -T application/json -D {body} {url}", flush=True)
        signal.pause()


@contextmanager
def serving() -> Iterator[Server]:
    results.RESULTS.mkdir(exist_ok=True)
    log = results.RESULTS / f"{NAME}.log"
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        data_dir = Path(folder) / "data"
        artifact.make(data_dir, log)
        (port,) = free_ports(1)
        command = [sys.executable, "-m", "credence", "serve", "--port", str(port)]
        environment = {"CREDENCE_WORKER_METRICS_PORT": "0", "CREDENCE_THREADS": "1"}
        command += ["--data-dir", str(data_dir)]
        with running(command, environment, port, log) as server:
            artifact.wait_until_ready(f"http://127.0.0.1:{port}")
            yield server


def _measure(server: Server, seconds: float, times: float) -> dict[str, Any]:
    _alone(server.port, 50)  # loads the model
    data: dict[str, Any] = {"machine": results.machine(), "idle": _idle_connections(server)}
    data["before"] = _alone(server.port, 200)
    capacity = asyncio.run(_capacity(server.port, seconds / 2))
    data |= {"capacity": capacity, "rss_before": _rss(server)}
    with _peak_rss(server) as peak, _generating(server.port, times * capacity, seconds) as child:
        assert child.stdout is not None
        child.stdout.readline()  # the last request has been sent
        data["recovery_seconds"] = _recovery(server.port, data["before"]["p50"])
        data["overload"] = json.loads(child.stdout.readline())
    time.sleep(1)
    data |= {"rss_peak": max(peak), "rss_after": _rss(server)}
    data["beside_largest"] = _beside(_largest_request, server.port)
    data["beside_mixed"] = _beside(_uploads_trainings_and_lists, server.port)
    return data


def _request() -> bytes:
    return SYSTEMS["Credence"].requests()[0]


def _alone(port: int, count: int) -> dict[str, float]:
    """Percentiles of `count` sequential requests, in milliseconds."""

    async def ask() -> list[float]:
        client, seconds = Client(port), []
        for _ in range(count):
            started = time.perf_counter()
            response = await client.post(_request())
            seconds.append(time.perf_counter() - started)
            assert response.status == 200, response.body
        await client.close()
        return seconds

    return _percentiles(asyncio.run(ask()))


async def _capacity(port: int, seconds: float) -> float:
    client = Client(port)
    summary = await closed_loop(client, SYSTEMS["Credence"].requests(), CLIENTS, seconds)
    await client.close()
    return summary.throughput


def _recovery(port: int, usual: float) -> float:
    """Seconds until requests are about as fast as before the overload."""
    started = time.perf_counter()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        head, _, body = _request().partition(b"\r\n\r\n")
        assert head
        while time.perf_counter() - started < 60:
            begun = time.perf_counter()
            response = client.post("/predict", content=body)
            took = 1000 * (time.perf_counter() - begun)
            if response.status_code == 200 and took < RECOVERED * usual + 5:
                break
            time.sleep(0.05)
    return time.perf_counter() - started


def _idle_connections(server: Server) -> dict[str, float]:
    """Memory and CPU of `IDLE` idle connections, after one response each."""

    async def hold() -> dict[str, float]:
        before = _rss(server)
        opened = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(IDLE)]
        for reader, writer in opened:
            writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readuntil(b"}")
        held, used, began = _rss(server), server.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(3)  # uvicorn keeps an idle connection for 5 s
        share = (server.cpu_seconds() - used) / (time.perf_counter() - began)
        for _, writer in opened:
            writer.close()
        return {"cpu_share": share, "mib": held - before}

    quiet, began = server.cpu_seconds(), time.perf_counter()
    time.sleep(3)
    without = (server.cpu_seconds() - quiet) / (time.perf_counter() - began)
    return {"cpu_share_without": without} | asyncio.run(hold())


def _beside(load: Callable[[int, threading.Event], None], port: int) -> dict[str, float]:
    """Percentiles of small requests beside another load, in milliseconds."""
    stop = threading.Event()
    thread = threading.Thread(target=load, args=(port, stop))
    thread.start()
    time.sleep(1)
    try:
        return _alone(port, 30)
    finally:
        stop.set()
        thread.join()


def _largest_request(port: int, stop: threading.Event) -> None:
    """Send the largest allowed request (10 million rows × samples). Disconnect at the end."""
    inputs = {"x": [[0.5] * INPUTS] * 1000}
    body = json.dumps({"model": MODEL, "inputs": inputs, "samples": 10_000}).encode()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(request_bytes("/predict", body))
        stop.wait()


def _uploads_trainings_and_lists(port: int, stop: threading.Event) -> None:
    """Send one request after the other. Each upload of 1 MB is a new data set."""
    data = {"columns": {"x": list(range(30)), "y": list(range(30))}}
    train = {"model": "line", "target": "y", "data": data, "training": {"epochs": 1}}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for number in iter(int, 1):
            if stop.is_set():
                return
            table = f"x,y\n{time.time_ns()},{number}\n" + "1,2\n" * 250_000
            headers = {"Content-Type": "text/csv"}
            with suppress(httpx.HTTPError):
                client.post("/datasets?name=a", content=table.encode(), headers=headers)
                for _ in range(10):
                    client.post("/train", json=train)
                client.get("/jobs")


@contextmanager
def _generating(port: int, rate: float, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Run the generator in another process, so that this one does not delay it."""
    command = [sys.executable, "-m", "benchmarks.overload", "--generate", str(port)]
    command += ["--rate", str(rate), "--seconds", str(seconds)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield child
        finally:
            child.wait(60)


async def generate(port: int, rate: float, seconds: float) -> None:
    """Send requests when due. Print a line when all are sent, and the summary at the end."""
    client, request = Client(port, MAX_CONNECTIONS), _request()
    found: list[tuple[int, float, int | None]] = []

    async def ask() -> None:
        started = time.perf_counter()
        try:
            response = await asyncio.wait_for(client.post(request), 30)
            found.append((response.status, time.perf_counter() - started, response.retry_after))
        except OSError:  # also a timeout
            found.append((0, time.perf_counter() - started, None))

    began, tasks = time.perf_counter(), []
    for due in arrivals(rate, seconds):
        if (early := began + due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        tasks.append(asyncio.create_task(ask()))
    took = time.perf_counter() - began
    print("sent", flush=True)
    await asyncio.gather(*tasks)
    await client.close()
    print(json.dumps(_summary(found, took)), flush=True)


def _summary(found: list[tuple[int, float, int | None]], seconds: float) -> dict[str, Any]:
    accepted = [took for status, took, _ in found if status == 200]
    refused = [(took, after) for status, took, after in found if status in (429, 503)]
    delays = sorted(after for _, after in refused if after is not None)
    return {
        "offered": len(found) / seconds,
        "accepted": len(accepted) / seconds,
        "accepted_ms": _percentiles(accepted),
        "refused": len(refused) / seconds,
        "refused_ms": _percentiles([took for took, _ in refused]),
        "retry_after": [delays[0], delays[-1]] if delays else [],
        "without_retry_after": len(refused) - len(delays),
        "lost": len(found) - len(accepted) - len(refused),
    }


def _percentiles(seconds: list[float]) -> dict[str, float]:
    return {"p50": 1000 * percentile(seconds, 0.5), "p99": 1000 * percentile(seconds, 0.99)}


def _rss(server: Server) -> float:
    """Resident memory of API and worker in MiB."""
    total = 0
    for process in server.tree():
        with suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss
    return total / MEBIBYTE


@contextmanager
def _peak_rss(server: Server) -> Iterator[list[float]]:
    seen, stop = [_rss(server)], threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            seen.append(_rss(server))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


def table(data: dict[str, Any]) -> str:
    """The table of docs/reliability.md."""

    def both(times: dict[str, float]) -> str:
        return f"{times['p50']:.1f} / {times['p99']:.1f} ms"

    over, idle = data["overload"], data["idle"]
    after = " to ".join(str(value) for value in over["retry_after"]) or "none"
    rows = [
        ("one client, p50 / p99", both(data["before"])),
        (f"capacity ({CLIENTS} clients)", f"{data['capacity']:.0f}/s"),
        ("offered", f"{over['offered']:.0f}/s"),
        ("answered", f"{over['accepted']:.0f}/s"),
        ("answered, p50 / p99", both(over["accepted_ms"])),
        ("refused", f"{over['refused']:.0f}/s"),
        ("refused, p50 / p99", both(over["refused_ms"])),
        ("`Retry-After`", f"{after} s; missing {over['without_retry_after']} times"),
        ("neither answered nor refused", f"{over['lost']}"),
        (
            "memory before / peak / after",
            f"{data['rss_before']:.0f} / {data['rss_peak']:.0f} / {data['rss_after']:.0f} MiB",
        ),
        ("as fast as before after", f"{data['recovery_seconds']:.1f} s"),
        ("one client beside the largest request, p50 / p99", both(data["beside_largest"])),
        ("one client beside uploads, trainings, lists, p50 / p99", both(data["beside_mixed"])),
        (f"{IDLE} idle connections, memory", f"{idle['mib']:.1f} MiB"),
        (
            "processor, with them / without",
            f"{100 * idle['cpu_share']:.1f} / {100 * idle['cpu_share_without']:.1f} % of a core",
        ),
    ]
    return "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of the overload")
    parser.add_argument("--times", type=float, default=10.0, help="load ÷ capacity")
    parser.add_argument("--serve", action="store_true", help="only print a command for hey")
    parser.add_argument("--generate", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--rate", type=float, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.generate is not None:
        uvloop.run(generate(arguments.generate, arguments.rate, arguments.seconds))
        return
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(1)
    )  # leaves the `with` blocks, which stop the server
    if arguments.serve:
        with suppress(KeyboardInterrupt):
            serve()
        return
    data = run(arguments.seconds, arguments.times)
    results.save(NAME, data)
    print(table(data))


if __name__ == "__main__":
    main()
