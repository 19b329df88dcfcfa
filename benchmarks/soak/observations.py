"""What a running service takes: memory, threads, files, disk, database, and time to answer."""

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from benchmarks.http.process import Server
from benchmarks.soak.actions import PATIENCE_SECONDS, PROBE, is_refusal

MEBIBYTE = 2**20
SECONDS = 5.0  # between two observations
PROBE_SECONDS = 1.0


@dataclass
class Series:
    """Values by name, each with its time."""

    times: dict[str, list[float]] = field(default_factory=dict)
    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, seconds: float, value: float) -> None:
        self.times.setdefault(name, []).append(seconds)
        self.values.setdefault(name, []).append(value)


class Observer:
    """Threads that observe a service until the block ends; times are seconds since its start."""

    def __init__(self, server: Server, data_dir: Path) -> None:
        self.series = Series()
        self.workers: set[int] = set()  # more than one: it was started again
        self.failed: list[str] = []  # probes without an answer; an observation that ended all
        self._server, self._data_dir = server, data_dir
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._observe, name="observe"),
            threading.Thread(target=self._probe, name="probe"),
        ]

    def __enter__(self) -> "Observer":
        self._started = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _now(self) -> float:
        return time.monotonic() - self._started

    def _observe(self) -> None:
        while not self._stop.wait(SECONDS):
            now = self._now()
            try:
                for name, value in self._all():
                    self.series.add(name, now, value)
            except Exception as error:  # else the run would pass by what was seen before
                self.failed.append(f"observer: {error!r}")
                raise

    def _all(self) -> Iterator[tuple[str, float]]:
        for name, process in self._processes():
            with suppress(psutil.NoSuchProcess):
                yield f"{name}: memory, MiB", process.memory_info().rss / MEBIBYTE
                yield f"{name}: threads", process.num_threads()
                yield f"{name}: open files", process.num_fds()
        yield "files in the data directory, MiB", _bytes(self._data_dir) / MEBIBYTE
        yield from tables(self._data_dir / "credence.db")

    def _processes(self) -> Iterator[tuple[str, psutil.Process]]:
        """The API and its worker; what else they start lives for seconds."""
        for number, process in enumerate(self._server.tree()):
            with suppress(psutil.NoSuchProcess):
                if number == 0:
                    yield "API", process
                elif "worker" in process.cmdline():
                    self.workers.add(process.pid)
                    yield "worker", process

    def _probe(self) -> None:
        """One small prediction a second, on a connection of its own."""
        url = f"http://127.0.0.1:{self._server.port}"
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
            while not self._stop.wait(PROBE_SECONDS):
                began = time.perf_counter()
                try:
                    response = client.post("/predict", json=PROBE)
                except httpx.HTTPError as error:
                    self.failed.append(f"probe: {error!r}")
                    continue
                took = 1000 * (time.perf_counter() - began)
                if response.status_code == 200:
                    self.series.add("probe, ms", self._now(), took)
                elif not is_refusal(response):
                    told = f"{response.status_code} {response.text[:300]}"
                    self.failed.append(f"probe: {told}")


def tables(path: Path) -> Iterator[tuple[str, float]]:
    """MiB of pages in use of a SQLite file: of the history, and of all other tables."""
    query = (
        "SELECT tbl_name IN ('audit', 'events', 'jobs'), SUM(pgsize) FROM dbstat "
        "JOIN sqlite_schema USING (name) GROUP BY 1"
    )
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
        sizes = dict(connection.execute(query).fetchall())
    yield "database: history, MiB", sizes.get(1, 0) / MEBIBYTE
    yield "database: all else, MiB", sizes.get(0, 0) / MEBIBYTE


def _bytes(folder: Path) -> int:
    """Of all files but the database's, whose pages are counted by table."""
    total = 0
    for directory, _, names in os.walk(folder):  # leaves out folders that were deleted just now
        for name in names:
            if not name.startswith("credence.db"):
                with suppress(FileNotFoundError):
                    total += Path(directory, name).stat().st_size
    return total
