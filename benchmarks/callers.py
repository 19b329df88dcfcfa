"""One polite caller beside many greedy ones of unlike kinds.

    python -m benchmarks.callers [--seconds 20] [--clients 5]

A real `credence serve` with one compute thread has the model of `benchmarks.servers`
(784-400-400-10). Callers come from loopback addresses of their own, so that each has a share. The
polite one sends single rows with 100 samples, one after the other, with a pause; first alone, then
beside each kind of greedy ones, whose clients send again as soon as they are answered, and a tenth
of a second after a refusal, and then beside all kinds at once. Connections are cut at the end of
each measurement, and what was not answered by then does not count: a run takes six times the
seconds, and the start of the service. Prints a table in Markdown; writes
benchmarks/results/callers.json.
"""

import argparse
import http.client
import json
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from benchmarks import results
from benchmarks.http.load import percentile
from benchmarks.http.systems import INPUTS, MODEL
from benchmarks.overload import serving

NAME = "callers"
PAUSE_SECONDS = 0.02
AFTER_REFUSAL_SECONDS = 0.1
MOST_SECONDS = 120.0  # that a client waits for the next bytes
ROW = [0.5] * INPUTS


def _body(rows: int, samples: int, **more: Any) -> bytes:
    inputs = {"x": [ROW] * rows}
    return json.dumps({"model": MODEL, "inputs": inputs, "samples": samples} | more).encode()


KINDS: dict[str, bytes] = {
    "large: 200 rows × 10,000 samples": _body(200, 10_000),
    "medium: 16 rows × 1,000 samples": _body(16, 1000),
    "draws: 20 rows × 2,000 samples": _body(20, 2000, return_draws=True),
    "small: 1 row × 100 samples": _body(1, 100),
}


@dataclass
class Seen:
    """Statuses of some clients, and seconds by status; each pauses after an answer."""

    pause: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    seconds: dict[int, list[float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, status: int, seconds: float) -> None:
        with self.lock:
            self.statuses[status] += 1
            self.seconds.setdefault(status, []).append(seconds)

    def percentiles(self, status: int) -> list[float]:
        """Of the answers with a status: p50 and p99 in milliseconds."""
        seconds = self.seconds.get(status)
        return [1000 * percentile(seconds, share) for share in (0.5, 0.99)] if seconds else []


class Clients:
    """Connections that send the same again and again, until all of them are cut."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = threading.Event()
        self._connections: list[http.client.HTTPConnection] = []
        self._threads: list[threading.Thread] = []

    def start(self, address: str, body: bytes, seen: Seen) -> None:
        """Let one more client send a body from an address."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._port, MOST_SECONDS, source_address=(address, 0)
        )
        self._connections.append(connection)
        arguments = connection, body, seen, self._is_over
        self._threads.append(threading.Thread(target=send, args=arguments, daemon=True))
        self._threads[-1].start()

    def end(self) -> None:
        """Cut the connections, whatever is on its way, and wait for the clients."""
        self._is_over.set()
        while any(thread.is_alive() for thread in self._threads):
            for connection in self._connections:  # a client may have connected again meanwhile
                with suppress(OSError, AttributeError):
                    connection.sock.shutdown(socket.SHUT_RDWR)
            self._threads[0].join(0.05)
            self._threads = [thread for thread in self._threads if thread.is_alive()]


def send(
    connection: http.client.HTTPConnection, body: bytes, seen: Seen, is_over: threading.Event
) -> None:
    """Send a body again and again, until `is_over`."""
    while not is_over.is_set():
        started = time.perf_counter()
        try:
            status = _status(connection, body)
        except (OSError, http.client.HTTPException):
            connection.close()
            status = 0
        if is_over.is_set():
            break
        seen.add(status, time.perf_counter() - started)
        is_over.wait(seen.pause if status == 200 else AFTER_REFUSAL_SECONDS)
    connection.close()


def _status(connection: http.client.HTTPConnection, body: bytes) -> int:
    """Send a body once, read the answer, and return its status."""
    connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
    with connection.getresponse() as response:  # also closed if the answer breaks off
        response.read()
        return response.status


def beside(port: int, kinds: dict[str, bytes], clients: int, seconds: float) -> dict[str, Any]:
    """What the polite caller and the greedy ones see; each kind has an address of its own."""
    polite, greedy, running = Seen(PAUSE_SECONDS), Seen(), Clients(port)
    for number, body in enumerate(kinds.values(), start=3):
        for _ in range(clients):
            running.start(f"127.0.0.{number}", body, greedy)
    time.sleep(1.0 if kinds else 0.0)
    running.start("127.0.0.2", _body(1, 100), polite)
    time.sleep(seconds)
    running.end()
    return {
        "polite": dict(polite.statuses),
        "polite_ms": polite.percentiles(200),
        "greedy": dict(greedy.statuses),
        "greedy_ms": greedy.percentiles(200),
        "refused_ms": greedy.percentiles(503),
    }


def run(seconds: float, clients: int) -> dict[str, Any]:
    """All measurements, one after the other."""
    with serving() as server:
        beside(server.port, {}, clients, 2.0)  # loads the model
        data = {"alone": beside(server.port, {}, clients, seconds)}
        for name, body in KINDS.items():
            data[name] = beside(server.port, {name: body}, clients, seconds)
        data["all kinds"] = beside(server.port, KINDS, clients, seconds)
    return {"machine": results.machine(), "clients": clients, "beside": data}


def table(data: dict[str, Any]) -> str:
    """The table of docs/benchmarks.md."""

    def both(times: list[float]) -> str:
        return " / ".join(f"{each:.0f}" for each in times) or "–"

    def counts(statuses: dict[int, int]) -> str:
        return ", ".join(f"{n} × {status}" for status, n in sorted(statuses.items())) or "–"

    rows = [
        (
            name,
            counts(one["polite"]),
            both(one["polite_ms"]),
            counts(one["greedy"]),
            both(one["greedy_ms"]),
            both(one["refused_ms"]),
        )
        for name, one in data["beside"].items()
    ]
    headers = (
        "beside",
        "polite: answers",
        "p50 / p99, ms",
        "greedy: answers",
        "answered, ms",
        "refused, ms",
    )
    return results.markdown(headers, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--clients", type=int, default=5, help="connections of each kind")
    arguments = parser.parse_args()
    data = run(arguments.seconds, arguments.clients)
    results.save(NAME, data)
    print(table(data))


if __name__ == "__main__":
    main()
