"""What hostile uploads and archives do to a service: memory, time, and answers to others.

.venv/bin/python -m benchmarks.attacks                     # all, a fresh service each
.venv/bin/python -m benchmarks.attacks zeros archive       # some

Every attack is sent to `credence serve`, while another process asks /health/live all the time. The
memory is that of the API and of the children that read files for it.
"""

import argparse
import gzip
import json
import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
import numpy as np
import psutil

from tests.attacks import artifacts
from tests.credence.running import serving

TAR, CSV, GZIP = "application/x-tar", "text/csv", {"Content-Encoding": "gzip"}
SECONDS = 300.0
Answer = tuple[str, int, float]
"""A request, its status and its seconds."""


@dataclass(frozen=True)
class Attacker:
    """A client that notes what it is answered."""

    http: httpx.Client
    answers: list[Answer]

    def send(self, method: str, path: str, **options: object) -> httpx.Response:
        started = time.perf_counter()
        answer = self.http.request(method, path, timeout=SECONDS, **options)  # type: ignore[arg-type]
        seconds = time.perf_counter() - started
        self.answers.append((f"{method} {path}", answer.status_code, seconds))
        return answer

    def upload(self, body: bytes, name: str = "x", **headers: str) -> httpx.Response:
        return self.send(
            "POST", f"/datasets?name={name}", content=body, headers={"Content-Type": CSV} | headers
        )

    def import_version(self, body: bytes) -> httpx.Response:
        headers = {"Content-Type": TAR}
        return self.send("POST", "/models/copied/versions", content=body, headers=headers)


def archive_card(attacker: Attacker) -> None:
    """A card of 63 MB of empty lists; then the card, a prediction, and the end of the model."""
    lists = b"[" + b"[]," * 21_000_000 + b"[]]"
    attacker.import_version(artifacts.packed(artifacts.with_card_member(lists)))
    attacker.send("GET", "/models/copied/versions/1/card")
    body = {"model": "copied", "inputs": [[1.0, "oak"]]}
    attacker.send("POST", "/predict", json=body)
    attacker.send("DELETE", "/models/copied")


def archive_notes(attacker: Attacker) -> None:
    """54 MB of notes in model.json."""
    files = artifacts.files()
    model = json.loads(files["model.json"])
    for notes in (["m" * 54_000_000], ["m" * 54_000] * 1_000, ["n"] * 13_500_000):
        changed = json.dumps(model | {"notes": notes}).encode()
        attacker.import_version(artifacts.packed(files | {"model.json": changed}))
    attacker.send("GET", "/models")


def zeros(attacker: Attacker, count: int = 1) -> None:
    """130 million rows of 0 in gzip."""
    bodies = [gzip.compress(b"a\n%d\n" % i + b"0\n" * 130_000_000, 6) for i in range(count)]
    with ThreadPoolExecutor(count) as clients:
        for i, body in enumerate(bodies):
            clients.submit(attacker.upload, body, f"x{i}", **GZIP)


def four_zeros(attacker: Attacker) -> None:
    """Four of them at once, of which none has the bytes of another."""
    zeros(attacker, 4)


def strings(attacker: Attacker) -> None:
    """46 MB of strings that are all different."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**62, 2_700_000)
    attacker.upload(b"a\n" + b"\n".join(b"%016x" % word for word in words.tolist()) + b"\n")


def columns(attacker: Attacker) -> None:
    """100,000 columns, then the list of data sets."""
    names = ",".join(f"c{i}" for i in range(100_000))
    rows = "\n".join(",".join(str((i * 7 + r) % 100) for i in range(100_000)) for r in range(3))
    attacker.upload(f"{names}\n{rows}\n".encode())
    attacker.send("GET", "/datasets")


ATTACKS: Mapping[str, Callable[[Attacker], None]] = {
    "quiet": lambda _: time.sleep(5),
    "archive_card": archive_card,
    "archive_notes": archive_notes,
    "zeros": zeros,
    "four_zeros": four_zeros,
    "strings": strings,
    "columns": columns,
}


def _ask(url: str, pipe: Connection) -> None:
    """Ask /health/live until something is said, then give the seconds of every answer."""
    seconds = []
    with httpx.Client(base_url=url, timeout=SECONDS) as http:
        http.get("/health/live")
        pipe.send(None)
        while not pipe.poll():
            started = time.perf_counter()
            http.get("/health/live").raise_for_status()
            seconds.append(time.perf_counter() - started)
            time.sleep(0.005)
    pipe.send(seconds)


@contextmanager
def asking(url: str, seconds: list[float]) -> Iterator[None]:
    """Ask /health/live during the block; its answers' seconds are put into the list."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_ask, args=(url, there))
    process.start()
    there.close()  # so that the end of the process ends the waiting, too
    here.recv()
    try:
        yield
    finally:
        here.send(None)
        seconds += here.recv()
        process.join()


class Memory:
    """The memory of the API and of the children that read for it: now, and the most so far."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self.before = self.most = self.now()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def now(self) -> int:
        total = 0
        for one in (self._process, *self._process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                if one == self._process or "core.process.confined" in one.cmdline():
                    total += one.memory_info().rss
        return total

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.02):
            self.most = max(self.most, self.now())


def attack(name: str, environment: Mapping[str, str]) -> None:
    """Print what one attack does to a fresh service."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), **environment) as service:
        memory, live, answers = Memory(psutil.Process(service.process.pid)), [], []
        with (
            asking(service.url, live),
            httpx.Client(base_url=service.url) as http,
        ):
            started = time.perf_counter()
            ATTACKS[name](Attacker(http, answers))
            seconds = time.perf_counter() - started
        memory.stop()
        mb = [round(n / 1e6) for n in (memory.before, memory.most, memory.now())]
        p99, most = (1000 * np.quantile(live, q) for q in (0.99, 1.0))
        statuses = ", ".join(f"{what} {status} ({s:.1f} s)" for what, status, s in answers)
        print(
            f"| {name} | {seconds:.1f} | {p99:.0f} | {most:.0f} | {mb[0]} | {mb[1]} | {mb[2]} | "
            f"{statuses} |",
            flush=True,
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each attack on a service of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(ATTACKS), metavar="attack")
    args = parser.parse_args(arguments)
    print(
        "| attack | seconds | live p99 ms | live most ms | MB before | MB most | MB after | "
        "answers |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    )
    for name in args.names:
        attack(name, {})


if __name__ == "__main__":
    main()
