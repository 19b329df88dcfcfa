"""What bodies and responses hold is reserved, refused if it is too much, and given back."""

import asyncio
import gzip
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from fastapi import FastAPI, Request
from starlette.types import Message

from app.http.bodies import read_inflated
from app.http.held_memory import OF_BODY, OF_RESPONSE, HeldMemory
from app.http.large_work import LargeWork
from core.process.memory_budget import MemoryBudget
from tests.app.conftest import MakeService
from tests.app.running import Service

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
    answer = small.post("/predict", body)
    assert answer.status_code == 413
    assert "CREDENCE_MEMORY_BYTES" in answer.json()["detail"]


def test_a_response_that_never_fits_is_too_large(small: Service) -> None:
    values = BUDGET // (20 * OF_RESPONSE)
    asked = {"model": "price", "inputs": [ROW] * 200, "samples": values // 200}
    assert small.post("/predict", asked).status_code == 200
    answer = small.post("/predict", asked | {"return_draws": True})
    assert answer.status_code == 413


def test_while_others_hold_the_memory_large_ones_wait_and_small_ones_are_answered(
    small: Service,
) -> None:
    asked = {"model": "price", "inputs": [ROW] * 10_000, "samples": 2}
    memory = small.context.memory
    free = memory.total - sum(memory.reserved().values())
    with memory.reserve("uploads", free):
        answer = small.post("/predict", asked)
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "CREDENCE_MEMORY_BYTES" in answer.json()["detail"]
        few = asked | {"inputs": [ROW]}
        assert small.post("/predict", few).status_code == 200
    assert small.post("/predict", asked).status_code == 200
    assert small.metric("credence_memory_reserved_bytes", use="bodies") == 0
    assert small.metric("credence_memory_limit_bytes") == BUDGET


INFLATED = 16 * 2**20


class Noting(HeldMemory):
    """Notes the threads that ask for memory of more than a small body."""

    def __init__(self, budget: MemoryBudget) -> None:
        super().__init__(budget)
        self.threads: set[str] = set()

    def body(self, num_bytes: int, declared: int) -> None:
        self.threads.add(threading.current_thread().name)
        super().body(num_bytes, declared)


def inflated(packed: bytes, held: HeldMemory) -> bytes:
    """What a request with this body is read as."""
    app, large_work = FastAPI(), LargeWork()
    app.state.services = SimpleNamespace(large_work=large_work)

    async def receive() -> Message:
        return {"type": "http.request", "body": packed, "more_body": False}

    scope = {
        "type": "http",
        "app": app,
        "headers": [(b"content-encoding", b"gzip")],
        "state": {"held_memory": held},
    }
    try:
        return asyncio.run(read_inflated(Request(scope, receive)))
    finally:
        large_work.close()


def test_blanks_are_inflated_in_a_thread_and_held() -> None:
    """63 kB became 62 MB on the event loop, and were held only afterwards."""
    budget = MemoryBudget(2**40)
    held = Noting(budget)
    packed = gzip.compress(b" " * INFLATED)
    assert len(packed) < 2**15
    assert inflated(packed, held) == b" " * INFLATED
    assert {name.rpartition("_")[0] for name in held.threads} == {"large-work"}
    assert budget.reserved()["bodies"] >= OF_BODY * (INFLATED - 2**16)
    held.release()
    assert budget.reserved()["bodies"] == 0
