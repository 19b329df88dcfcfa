"""One server's turn: warm up, then one client, many clients, increasing rates."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.http.connection import Client
from benchmarks.http.generator import RESPONSE_SECONDS, closed_loop, open_loop
from benchmarks.http.load import Summary
from benchmarks.http.process import Server
from benchmarks.http.systems import System

READY_SECONDS = 90.0
ALONE = 100  # requests of a single client
SETTLE_SECONDS = 1.0
SATURATED = 0.9  # a server that answers a smaller share is saturated


class NotServing(Exception):
    """A server gives no response, or a wrong one."""


@dataclass(frozen=True)
class Plan:
    """The load on every server."""

    concurrencies: Sequence[int]
    rates: Sequence[float]
    seconds: float  # of each run


async def first_response(server: Server, system: System) -> list[float]:
    """Wait until the server responds; return the mean for the first request.

    Raises:
        NotServing: the server ends, or does not respond in time.
    """
    deadline = time.monotonic() + READY_SECONDS
    request = system.requests()[0]
    problem = "no connection"
    while time.monotonic() < deadline and server.alive:
        client = Client(server.port)
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                response = await client.post(request)
            if response.status == 200:
                return system.read(json.loads(response.body))[0]
            problem = f"status {response.status}: {response.body[:200]!r}"
        except OSError as error:
            problem = str(error) or "no response"
        finally:
            await client.close()
        await asyncio.sleep(0.3)
    state = f"{problem} after {READY_SECONDS:.0f} s" if server.alive else f"has ended ({problem})"
    raise NotServing(f"{system.name}: {state}")


async def take(server: Server, system: System, plan: Plan) -> dict[str, Any]:
    """Measure a server. Returns all results as JSON values.

    Raises:
        NotServing, OSError: a single client gets no response.
    """
    requests = system.requests()
    client = Client(server.port)
    try:
        await closed_loop(client, requests, max(plan.concurrencies), SETTLE_SECONDS)
        alone = await _alone(client, system)
        closed = {
            str(c): asdict(await closed_loop(client, requests, c, plan.seconds))
            for c in plan.concurrencies
        }
        return {"alone": alone, "closed": closed, "open": await _rates(client, requests, plan)}
    finally:
        await client.close()


async def _alone(client: Client, system: System) -> dict[str, float]:
    """Median milliseconds of a single client: in all, for computing, and the rest."""
    latencies, computing = [], []
    for request in (system.requests() * ALONE)[:ALONE]:
        started = time.perf_counter()
        async with asyncio.timeout(RESPONSE_SECONDS):
            response = await client.post(request)
        if response.status != 200:
            raise NotServing(f"{system.name}: status {response.status}: {response.body[:200]!r}")
        latencies.append(1000 * (time.perf_counter() - started))
        computing.append(system.read(json.loads(response.body))[1])
    rest = [latency - compute for latency, compute in zip(latencies, computing, strict=True)]
    return {
        "latency_ms": median(latencies),
        "compute_ms": median(computing),
        "overhead_ms": median(rest),
    }


async def _rates(client: Client, requests: Sequence[bytes], plan: Plan) -> dict[str, Any]:
    """Results by rate, up to the first rate at which the server is saturated."""
    found: dict[str, Any] = {}
    for rate in sorted(plan.rates):
        summary = await open_loop(client, requests, rate, plan.seconds)
        found[f"{rate:g}"] = asdict(summary)
        if _is_saturated(summary):
            break
    return found


def _is_saturated(summary: Summary) -> bool:
    answered = summary.requests - sum(summary.failures.values())
    return answered < SATURATED * summary.requests or (summary.milliseconds["p50"] or 1e9) > 1000
