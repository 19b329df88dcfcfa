"""Hostile clients of unlike kinds, and what they are answered.

Each client has a connection for each request, sends again a moment after the answer, and heeds no
`Retry-After`. The clients of a kind share a key, whose owner they are.
"""

import asyncio
import gzip
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from tests.attacks import artifacts

PAUSE_SECONDS = 0.1
TAR = "application/x-tar"
REFUSED = (401, 403, 421, 429, 503)
ROW = [1.0, "oak", True, "2026-01-05T00:00:00Z"]
Send = Callable[[], Awaitable[tuple[int, float]]]
"""Sends a request; gives its status, 0 without one, and the seconds to it."""


@dataclass
class Seen:
    """What the clients of one kind were answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    refused: list[float] = field(default_factory=list)
    """Seconds until a refusal."""


@dataclass(frozen=True)
class Door:
    """Where the clients send to: a port, a key of scope `train`, and a queued job of its owner."""

    port: int
    key: str
    job: str

    def head(self, method: str, path: str, **headers: str) -> bytes:
        own = {"Host": f"127.0.0.1:{self.port}", "Authorization": f"Bearer {self.key}"}
        own |= {"Connection": "close"}
        lines = [f"{name.replace('_', '-')}: {text}" for name, text in (own | headers).items()]
        return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()

    def post(self, path: str, body: bytes, kind: str = "application/json", **more: str) -> bytes:
        size = str(len(body))
        return self.head("POST", path, Content_Type=kind, Content_Length=size, **more) + body

    def predict(self, rows: int, samples: int, **more: object) -> bytes:
        body = {"model": "price", "inputs": [ROW] * rows, "samples": samples} | more
        return self.post("/predict", json.dumps(body).encode())

    async def ask(self, request: bytes, keep_unread: float = 0.0) -> tuple[int, float]:
        """Send a request, and read the whole response; first nothing for some seconds."""
        started = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**16)
        try:
            writer.write(request)
            await writer.drain()
            await asyncio.sleep(keep_unread)
            line = await reader.readline()
            seconds = time.perf_counter() - started
            while await reader.read(2**16):
                pass
            return int(line.split()[1]) if line else 0, seconds
        finally:
            writer.close()


async def drip(door: Door, request: bytes, gap_seconds: float = 1.0) -> tuple[int, float]:
    """Send a request byte by byte until the service has had enough; it is never whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    try:
        answer = asyncio.create_task(reader.readline())
        for byte in request:
            writer.write(bytes([byte]))
            done, _ = await asyncio.wait([answer], timeout=gap_seconds)
            if done:
                break
        answer.cancel()
        return 0, 0.0
    finally:
        writer.close()


def bomb() -> bytes:
    """An archive of 67 kB whose card is 63 MB of empty lists."""
    lists = b"[" + b"[]," * 21_000_000 + b"[]]"
    return artifacts.packed(artifacts.with_card_member(lists))


def upload() -> bytes:
    """1.1 MB of gzip: 130 million rows of 0."""
    return gzip.compress(b"a\n" + b"0\n" * 130_000_000, 6)


def wrong_key(door: Door) -> bytes:
    return door.head("GET", "/models", Authorization=f"Bearer {os.urandom(20).hex()}")


def fixed(door: Door, request: bytes, keep_unread: float = 0.0) -> Send:
    """Send the same request each time."""
    return partial(door.ask, request, keep_unread)


def kinds(bodies: Mapping[str, bytes]) -> dict[str, Callable[[Door], Send]]:
    """What each kind sends. Bombs and uploads are given, because they take seconds to make."""
    intervals = [(1 + i) / 20 for i in range(16)]
    columns = json.dumps({"model": "price", "inputs": {"size": [0.5] * 500_000}}).encode()
    draws = partial(Door.predict, rows=100, samples=10_000, return_draws=True)
    return {
        "large predictions": lambda d: fixed(d, d.predict(1000, 10_000)),
        "16 intervals": lambda d: fixed(d, d.predict(100, 1000, intervals=intervals)),
        "draws": lambda d: fixed(d, draws(d)),
        "draws, not read": lambda d: fixed(d, draws(d), 10.0),
        "large bodies": lambda d: fixed(d, d.post("/predict", columns)),
        "slow bodies": lambda d: partial(drip, d, d.predict(1, 100)[:-1]),
        "half-sent heads": lambda d: partial(drip, d, d.head("GET", "/models")[:-4]),
        "bombs": lambda d: fixed(d, d.post("/models/x/versions", bodies["bomb"], TAR)),
        "uploads": lambda d: fixed(
            d, d.post("/datasets?name=x", bodies["upload"], "text/csv", Content_Encoding="gzip")
        ),
        "event streams, not read": lambda d: fixed(
            d, d.head("GET", f"/jobs/{d.job}/events", Accept="text/event-stream"), 60.0
        ),
        "wrong keys": lambda d: lambda: d.ask(wrong_key(d)),
        "forged hosts": lambda d: fixed(d, d.head("GET", "/models", Host="evil.example")),
    }


async def attack(
    doors: Mapping[str, Door], bodies: Mapping[str, bytes], clients: int, seconds: float
) -> dict[str, Seen]:
    """Send from so many clients, in turn of each kind, for some seconds."""
    found, made = {name: Seen() for name in doors}, kinds(bodies)
    names = list(doors)
    sends = {name: make(doors[name]) for name, make in made.items()}
    tasks = [
        asyncio.create_task(_client(sends[name], found[name]))
        for name in (names[i % len(names)] for i in range(clients))
    ]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return found


async def _client(send: Send, seen: Seen) -> None:
    while True:
        status, seconds = 0, 0.0
        with suppress(OSError, ValueError):
            status, seconds = await send()
        seen.statuses[status] += 1
        if status in REFUSED:
            seen.refused.append(seconds)
        await asyncio.sleep(PAUSE_SECONDS)
