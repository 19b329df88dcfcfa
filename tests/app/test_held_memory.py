"""Memory and threads of requests: shared, refused if too much, and given back."""

import asyncio
import gzip
import threading
from collections.abc import Awaitable, Callable, Iterator

import anyio
import pytest
from anyio import to_thread

from app.http.caller_threads import RETRY_AFTER_SECONDS, CallerThreads
from app.http.held_memory import OF_BODY, OF_RESPONSE, HeldMemory
from app.http.large_work import INLINE_BYTES, LargeWork
from app.main import MAX_UPLOADS, WRITERS
from core.exceptions import Unavailable
from tests.app.conftest import MakeService
from tests.app.running import Service, answered

ROW = [1.0, "oak", True, None]
BUDGET = 2**26


@pytest.fixture
def small(make_service: MakeService) -> Iterator[Service]:
    """A service of little memory. At its end, nothing is reserved but for the model."""
    service = make_service(memory_bytes=BUDGET)
    assert service.post("/predict", {"model": "price", "inputs": [ROW]}).status_code == 200
    yield service
    held = service.context.memory.reserved()
    assert held.pop("models") > 0
    assert set(held.values()) <= {0}


def test_a_body_that_never_fits_is_too_large(small: Service) -> None:
    body = {"model": "price", "inputs": [ROW], "texts": "x" * (BUDGET // OF_BODY)}
    answer = answered(small.post("/predict", body), 413)
    assert "CREDENCE_MEMORY_BYTES" in answer.json()["detail"]


def test_a_response_that_never_fits_is_too_large(small: Service) -> None:
    values = BUDGET // (20 * OF_RESPONSE)
    asked = {"model": "price", "inputs": [ROW] * 200, "samples": values // 200}
    assert small.post("/predict", asked).status_code == 200
    answered(small.post("/predict", asked | {"return_draws": True}), 413)


def test_large_ones_wait_for_memory_and_small_ones_are_answered(
    small: Service,
) -> None:
    asked = {"model": "price", "inputs": [ROW] * 10_000, "samples": 2}
    memory = small.context.memory
    free = memory.total - sum(memory.reserved().values())
    with memory.reserve("uploads", free):
        answer = answered(small.post("/predict", asked), 503)
        assert int(answer.headers["Retry-After"]) > 0
        assert "CREDENCE_MEMORY_BYTES" in answer.json()["detail"]
        few = asked | {"inputs": [ROW]}
        assert small.post("/predict", few).status_code == 200
    assert small.post("/predict", asked).status_code == 200
    assert small.metric("credence_memory_reserved_bytes", use="bodies") == 0
    assert small.metric("credence_memory_limit_bytes") == BUDGET


def test_blanks_are_inflated_in_a_thread(small: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """63 kB became 62 MB on the event loop, and were held only afterwards."""
    hold, seen = HeldMemory.body, list[tuple[str, int]]()

    def noted(held: HeldMemory, num_bytes: int, declared: int) -> None:
        seen.append((threading.current_thread().name, num_bytes))
        hold(held, num_bytes, declared)

    monkeypatch.setattr(HeldMemory, "body", noted)
    blanks = gzip.compress(b" " * (BUDGET // (8 * OF_BODY)))
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    answer = small.http.post("/v2/models/price/infer", content=blanks, headers=headers)
    assert answer.status_code == 400
    ((thread, held),) = seen
    assert thread.startswith("large-work")
    assert held >= BUDGET // (8 * OF_BODY)


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
