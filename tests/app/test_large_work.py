"""Large work: one piece at a time, callers in turn, and no turn is lost."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from app.http.large_work import INLINE_BYTES, LargeWork

LARGE = INLINE_BYTES + 1


@pytest.fixture
def large_work() -> Iterator[LargeWork]:
    work = LargeWork()
    yield work
    work.close()


async def started(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 120)


def test_callers_take_turns(large_work: LargeWork) -> None:
    """Anna's five wait before Ben's one and Carl's two; nobody waits for two of another's."""
    order: list[str] = []

    async def run() -> None:
        begun, go_on = threading.Event(), threading.Event()

        def first() -> None:
            begun.set()
            go_on.wait(120)

        calls = [asyncio.create_task(large_work.call("anna", LARGE, first))]
        await started(begun)
        names = ("anna", "anna", "anna", "ben", "carl", "carl")
        waiting = (large_work.call(name, LARGE, order.append, name) for name in names)
        calls += [asyncio.create_task(each) for each in waiting]
        await asyncio.sleep(0)  # each has taken its place
        go_on.set()
        await asyncio.gather(*calls)

    asyncio.run(run())
    assert order == ["anna", "ben", "carl", "anna", "carl", "anna"]


def test_small_work_needs_no_turn(large_work: LargeWork) -> None:
    async def run() -> int:
        begun, go_on = threading.Event(), threading.Event()

        def first() -> None:
            begun.set()
            go_on.wait(120)

        busy = asyncio.create_task(large_work.call("anna", LARGE, first))
        await started(begun)
        here = await large_work.call("anna", INLINE_BYTES, threading.get_ident)
        go_on.set()
        await busy
        return here

    assert asyncio.run(run()) == threading.get_ident()


def test_an_error_and_a_cancelled_call_give_their_turn_back(large_work: LargeWork) -> None:
    """Cancelled while it waits, and while it runs: the thread ends what it has begun first."""

    def fail() -> None:
        raise ValueError("wrong")

    async def run() -> str:
        with pytest.raises(ValueError, match="wrong"):
            await large_work.call("anna", LARGE, fail)
        begun, go_on, ends = threading.Event(), threading.Event(), []

        def first() -> None:
            begun.set()
            go_on.wait(120)
            ends.append("first")

        running = asyncio.create_task(large_work.call("anna", LARGE, first))
        await started(begun)
        waiting = asyncio.create_task(large_work.call("anna", LARGE, ends.append, "waiting"))
        last = asyncio.create_task(large_work.call("ben", LARGE, ends.append, "last"))
        await asyncio.sleep(0)
        waiting.cancel()
        running.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        assert not last.done()
        go_on.set()
        await last
        return " ".join(ends)

    assert asyncio.run(run()) == "first last"
