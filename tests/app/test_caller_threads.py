"""Threads and places of long requests: nobody waits for those of another."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest
from anyio import to_thread

from app.http.caller_threads import RETRY_AFTER_SECONDS, CallerThreads
from app.http.large_work import INLINE_BYTES, LargeWork
from app.main import MAX_UPLOADS, WRITERS
from core.exceptions import Unavailable


def run(work: Callable[[CallerThreads], Awaitable[None]]) -> None:
    async def main() -> None:
        await work(CallerThreads("uploads", WRITERS, MAX_UPLOADS))

    anyio.run(main)


def test_one_who_fills_its_threads_delays_nobody_else() -> None:
    release, begun = threading.Event(), threading.Semaphore(0)

    def hang() -> None:
        begun.release()
        assert release.wait(120)

    async def work(uploads: CallerThreads) -> None:
        async def upload(caller: str, what: Callable[[], None]) -> None:
            with uploads.entered(caller) as threads:
                await to_thread.run_sync(what, limiter=threads)

        async with anyio.create_task_group() as group:
            for _ in range(2 * WRITERS):
                group.start_soon(upload, "anna", hang)
            for _ in range(WRITERS):
                await to_thread.run_sync(begun.acquire)
            await upload("ben", lambda: None)
            assert not begun.acquire(blocking=False), "anna's others wait for her threads"
            release.set()

    run(work)


def test_places_are_shared_and_given_back() -> None:
    async def work(uploads: CallerThreads) -> None:
        entered = []

        def enter(caller: str) -> None:
            one = uploads.entered(caller)
            one.__enter__()
            entered.append(one)

        for _ in range(MAX_UPLOADS // 2):
            enter("anna")
        with pytest.raises(Unavailable, match="64 uploads are in progress here, 64 of them yours"):
            enter("anna")
        for _ in range(MAX_UPLOADS // 4):
            enter("ben")
        with pytest.raises(Unavailable, match="96 uploads are in progress here, 32 of them") as two:
            enter("ben")
        assert two.value.retry_after_seconds == RETRY_AFTER_SECONDS
        for one in entered:
            one.__exit__(None, None, None)
        assert (uploads._bound.held, uploads._limiters) == (0, {})

    run(work)


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
