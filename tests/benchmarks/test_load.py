"""The load generator's arithmetic, and its clocks against a server that behaves as it is told."""

import asyncio
import math

import numpy as np
import pytest

from benchmarks.http.connection import Client, request_bytes
from benchmarks.http.generator import closed_loop, open_loop
from benchmarks.http.load import Outcome, arrivals, percentile, summarise

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
OVERLOADED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"


def test_arrivals_are_a_poisson_process_of_the_rate_that_was_asked_for():
    times = arrivals(rate=500, seconds=8)
    gaps = np.diff([0.0, *times])
    assert len(times) == 4000
    assert (gaps > 0).all()
    assert times[-1] < 8
    # Exponential gaps: mean = standard deviation, here 2 ms; 4,000 of them tell it to ± 1.6 %.
    assert gaps.mean() == pytest.approx(0.002, rel=0.01)
    assert gaps.std() == pytest.approx(0.002, rel=0.08)
    assert arrivals(100, 1) == arrivals(100, 1)  # fixed beforehand


@pytest.mark.parametrize(("fraction", "expected"), [(0.5, 50), (0.95, 95), (0.99, 99), (1.0, 100)])
def test_a_percentile_is_the_nearest_rank(fraction: float, expected: int):
    assert percentile([float(i) for i in range(100, 0, -1)], fraction) == expected
    assert percentile([], fraction) == math.inf


def test_a_failed_request_counts_as_never_answered():
    outcomes = [Outcome(0.010)] * 97 + [Outcome(0.001, "503")] * 3
    summary = summarise(outcomes, seconds=2.0, offered=50.0)
    assert summary.milliseconds == {"p50": 10.0, "p95": 10.0, "p99": None}
    assert summary.throughput == pytest.approx(48.5)
    assert summary.failures == {"503": 3}


class _Server:
    """Answers each request after `delay` seconds, one at a time; the first after `stall`."""

    def __init__(self, delay: float, stall: float = 0.0, reply: bytes = ANSWER) -> None:
        self._delay, self._stall, self._reply = delay, stall, reply
        self._turn = asyncio.Lock()
        self._connections: list[asyncio.Task[None]] = []

    async def start(self) -> int:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        self._listener.close()
        await self._listener.wait_closed()
        await asyncio.gather(*self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(2)
            async with self._turn:
                await asyncio.sleep(self._delay + self._stall)
                self._stall = 0.0
            writer.write(self._reply)
        writer.close()
        await writer.wait_closed()


REQUEST = request_bytes("/predict", b"{}")


async def _with(server: _Server, run: str, *arguments: float):
    client = Client(await server.start())
    try:
        loop = {"open": open_loop, "closed": closed_loop}[run]
        return await loop(client, [REQUEST], *arguments)
    finally:
        await client.close()
        await server.stop()


@pytest.mark.timing
def test_the_open_loop_charges_a_stall_to_every_request_that_it_held_up():
    summary = asyncio.run(_with(_Server(delay=0.0, stall=0.5), "open", 100, 1.0))
    assert summary.requests == 100
    assert summary.failures == {}
    # Half of the requests were due during the stall and waited a quarter of a second on average;
    # a generator that waits for answers would have seen one slow request.
    assert summary.milliseconds["p95"] > 350
    assert summary.milliseconds["p99"] > 400


def test_a_refusal_is_a_failure_by_its_status_and_so_is_a_server_that_is_gone():
    summary = asyncio.run(_with(_Server(delay=0.0, reply=OVERLOADED), "open", 50, 0.2))
    assert summary.failures == {"503": 10}
    assert summary.milliseconds["p50"] is None

    async def run():
        server = _Server(delay=0.0)
        port = await server.start()
        await server.stop()
        return await open_loop(Client(port), [REQUEST], 50, 0.1)

    summary = asyncio.run(run())
    assert summary.requests == sum(summary.failures.values()) == 5
