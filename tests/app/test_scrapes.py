"""The metrics are computed once for all who wait, and never before they were asked for."""

import asyncio
import threading

from app.metrics.scrapes import Scrapes


def test_all_who_wait_share_the_next_computation() -> None:
    begun, go_on, number = threading.Semaphore(0), threading.Semaphore(0), iter(range(10))

    def compute() -> bytes:
        begun.release()
        assert go_on.acquire(timeout=120)
        return b"%d" % next(number)

    async def run() -> list[bytes]:
        scrapes = Scrapes(compute)
        first = asyncio.create_task(scrapes.text())
        assert await asyncio.to_thread(begun.acquire, timeout=120)
        others = [asyncio.create_task(scrapes.text()) for _ in range(50)]
        go_on.release()
        go_on.release()
        return [await first, *await asyncio.gather(*others)]

    answers = asyncio.run(run())
    assert answers == [b"0"] + [b"1"] * 50  # what had begun before they asked is not for them


def test_one_who_leaves_takes_nothing_from_the_others() -> None:
    begun, go_on = threading.Semaphore(0), threading.Semaphore(0)

    def compute() -> bytes:
        begun.release()
        assert go_on.acquire(timeout=120)
        return b"text"

    async def run() -> bytes:
        scrapes = Scrapes(compute)
        leaves, stays = asyncio.create_task(scrapes.text()), asyncio.create_task(scrapes.text())
        assert await asyncio.to_thread(begun.acquire, timeout=120)
        leaves.cancel()
        go_on.release()
        return await stays

    assert asyncio.run(run()) == b"text"


def test_a_failure_is_told_and_the_next_one_is_tried() -> None:
    outcomes = iter([RuntimeError("no"), None])

    def compute() -> bytes:
        if error := next(outcomes):
            raise error
        return b"text"

    async def run() -> list[object]:
        scrapes = Scrapes(compute)
        return [await asyncio.gather(scrapes.text(), return_exceptions=True) for _ in range(2)]

    [[error], [text]] = asyncio.run(run())
    assert (str(error), text) == ("no", b"text")
