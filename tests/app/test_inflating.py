"""A small body that inflates to a large one: not on the event loop, and its memory is held."""

import asyncio
import gzip
import threading
from types import SimpleNamespace

import pytest
from fastapi import FastAPI, Request
from starlette.types import Message

from app.http.bodies import MAX_BYTES, read_inflated
from app.http.held_memory import OF_BODY, HeldMemory
from app.http.large_work import LargeWork
from core.exceptions import TooLarge, Unavailable
from core.process.memory_budget import MemoryBudget

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


def test_without_memory_it_is_refused_before_it_is_inflated() -> None:
    budget = MemoryBudget(2 * OF_BODY * INFLATED)
    with budget.reserve("uploads", budget.total - 2**20), pytest.raises(Unavailable):
        inflated(gzip.compress(b" " * INFLATED), HeldMemory(budget))


def test_more_than_the_limit_is_refused() -> None:
    with pytest.raises(TooLarge, match=f"inflate to, {MAX_BYTES} bytes"):
        inflated(gzip.compress(b" " * (MAX_BYTES + 1)), HeldMemory(MemoryBudget(2**40)))
