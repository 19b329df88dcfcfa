"""Load: open loop (scheduled requests) and closed loop (each request waits for the last).

In the open loop, latency is measured from the scheduled time. So requests that were due while a
server stalled count with their delay (no coordinated omission).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import cycle

from benchmarks.http.connection import Client
from benchmarks.http.load import Outcome, Summary, arrivals, summarise

RESPONSE_SECONDS = 5.0  # later, a request counts as not answered
LEAD_SECONDS = 0.05


async def open_loop(
    client: Client, requests: Sequence[bytes], rate: float, seconds: float
) -> Summary:
    """Send `rate` requests per second for `seconds`."""
    loop = asyncio.get_running_loop()
    payloads = cycle(requests)
    tasks: list[asyncio.Task[Outcome]] = []

    def send(due: float) -> None:
        tasks.append(loop.create_task(_outcome(client, next(payloads), due)))

    start = time.perf_counter() + LEAD_SECONDS
    due = [start + moment for moment in arrivals(rate, seconds)]
    await asyncio.to_thread(_tick, due, lambda moment: loop.call_soon_threadsafe(send, moment))
    return summarise(await asyncio.gather(*tasks), seconds, rate)


def _tick(due: Sequence[float], send: Callable[[float], object]) -> None:
    """Call `send` at each due time. A thread is exact to 0.1 ms, an event loop to 1 ms."""
    for moment in due:
        time.sleep(max(0.0, moment - time.perf_counter()))
        send(moment)


async def closed_loop(
    client: Client, requests: Sequence[bytes], concurrency: int, seconds: float
) -> Summary:
    """Clients that each send a request as soon as they have the last response.

    Responses after the end are left out, because the load has ended by then.
    """
    end = time.perf_counter() + seconds
    payloads = cycle(requests)

    async def one_client() -> list[Outcome]:
        outcomes = []
        while (now := time.perf_counter()) < end:
            outcome = await _outcome(client, next(payloads), now)
            if outcome.failure is not None or now + outcome.seconds <= end:
                outcomes.append(outcome)
        return outcomes

    parts = await asyncio.gather(*(one_client() for _ in range(concurrency)))
    return summarise([outcome for part in parts for outcome in part], seconds, None)


async def _outcome(client: Client, request: bytes, due: float) -> Outcome:
    started = time.perf_counter()
    failure = None
    try:
        async with asyncio.timeout(due + RESPONSE_SECONDS - started):
            response = await client.post(request)
        failure = None if response.status == 200 else str(response.status)
    except OSError as error:  # also a timeout
        failure = str(error) or "no response"
    return Outcome(time.perf_counter() - due, failure, started - due)
