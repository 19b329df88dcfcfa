"""One server's turn: warm up, one client, many clients, increasing rates."""

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks.http.connection import Client
from benchmarks.http.generator import ANSWER_SECONDS, closed_loop, open_loop
from benchmarks.http.load import Summary
from benchmarks.http.process import Server
from benchmarks.http.systems import System

READY_SECONDS = 90.0
ALONE = 100  # requests, one after the other
SETTLE_SECONDS = 1.0
SATURATED = 0.9  # of the offered rate: below it higher rates tell nothing new


class NotServing(Exception):
    """A server gives no response, or a wrong one."""


@dataclass(frozen=True)
class Plan:
    """The load on every server."""

    concurrencies: Sequence[int]
    rates: Sequence[float]
    seconds: float  # of each run


async def first_answer(server: Server, system: System) -> list[float]:
    """Wait until the server responds; return the mean for the first request.

    Raises:
        NotServing: if the server ends, or answers nothing in time.
    """
    deadline = time.monotonic() + READY_SECONDS
    request = system.requests()[0]
    problem = "no connection"
    while time.monotonic() < deadline and server.alive:
        client = Client(server.port)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                answer = await client.post(request)
            if answer.status == 200:
                return system.read(json.loads(answer.body))[0]
            problem = f"status {answer.status}: {answer.body[:200]!r}"
        except OSError as error:
            problem = str(error) or "no answer"
        finally:
            await client.close()
        await asyncio.sleep(0.3)
    state = f"{problem} after {READY_SECONDS:.0f} s" if server.alive else f"has ended ({problem})"
    raise NotServing(f"{system.name}: {state}")


async def take(server: Server, system: System, plan: Plan) -> dict[str, Any]:
    """All results of one turn, as plain data.

    Raises:
        NotServing, OSError: if a single client gets no answer.
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
    """Median latency of single requests, the part that was computing, and the rest."""
    latencies, computing = [], []
    for request in (system.requests() * ALONE)[:ALONE]:
        started = time.perf_counter()
        async with asyncio.timeout(ANSWER_SECONDS):
            answer = await client.post(request)
        if answer.status != 200:
            raise NotServing(f"{system.name}: status {answer.status}: {answer.body[:200]!r}")
        latencies.append(1000 * (time.perf_counter() - started))
        computing.append(system.read(json.loads(answer.body))[1])
    rest = [latency - compute for latency, compute in zip(latencies, computing, strict=True)]
    return {
        "latency_ms": median(latencies),
        "compute_ms": median(computing),
        "overhead_ms": median(rest),
    }


async def _rates(client: Client, requests: Sequence[bytes], plan: Plan) -> dict[str, Any]:
    """Growing rates, up to the first that the server cannot follow."""
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
