"""The budget of memory: all or nothing, in order, for a limited time."""

import random
from collections.abc import Callable
from threading import Lock, Thread

import pytest

from core.exceptions import Unavailable
from core.process.memory_budget import RETRY_AFTER_SECONDS, MemoryBudget
from tests.core.together import at_once
from tests.waiting import wait_until


def begin(budget: MemoryBudget, *works: Callable[[], object]) -> list[Thread]:
    """A thread for each, in the order in which they wait."""
    threads = []
    for number, work in enumerate(works, 1):
        threads.append(Thread(target=work))
        threads[-1].start()
        wait_until(lambda number=number: len(budget._waiting) == number)
    return threads


def test_bytes_are_reserved_by_use_and_come_back() -> None:
    budget = MemoryBudget(100)
    with budget.reserve("uploads", 60) as upload, budget.reserve("models", 40):
        assert budget.reserved() == {"uploads": 60, "models": 40}
        upload.resize(10)
        assert budget.reserved()["uploads"] == 10
        upload.release()
        upload.release()
    assert budget.reserved() == {"uploads": 0, "models": 0}


def test_what_is_not_free_is_refused_with_the_numbers() -> None:
    budget = MemoryBudget(100)
    with budget.reserve("uploads", 60), pytest.raises(Unavailable) as refused:
        budget.reserve("results", 41)
    assert "41 bytes of memory, and 40 of 100 are free (CREDENCE_MEMORY" in str(refused.value)
    assert refused.value.retry_after_seconds == RETRY_AFTER_SECONDS
    with pytest.raises(Unavailable):
        budget.reserve("uploads", 101, wait_seconds=0.01)
    assert sum(budget.reserved().values()) == 0


def test_a_large_one_that_waits_is_not_passed_by_small_ones() -> None:
    budget, order, lock = MemoryBudget(100), list[str](), Lock()
    first = budget.reserve("uploads", 60)

    def take(name: str, num_bytes: int) -> None:
        with budget.reserve("uploads", num_bytes, wait_seconds=600), lock:
            order.append(name)

    threads = begin(budget, lambda: take("large", 90), lambda: take("small", 20))  # 20 would fit
    first.release()
    for thread in threads:
        thread.join()
    assert order == ["large", "small"]


def test_whatever_the_mix_the_total_is_never_passed() -> None:
    """200 threads: the sum of what all hold at once is counted beside the budget."""
    budget, lock, held, most = MemoryBudget(1000), Lock(), [0], [0]
    random_ = random.Random(0)
    sizes = [random_.choice((1, 10, 100, 750)) for _ in range(200)]

    def take(index: int) -> bool:
        try:
            reservation = budget.reserve("uploads", sizes[index], 0.5 * (index % 2))
        except Unavailable:
            return False
        with reservation:
            with lock:
                held[0] += sizes[index]
                most[0] = max(most[0], held[0])
            with lock:
                held[0] -= sizes[index]
        return True

    assert any(at_once(take, 200))
    assert most[0] <= budget.total
    assert sum(budget.reserved().values()) == 0
    assert not budget._waiting


@pytest.mark.parametrize("total", [1000, 1001, 1002, 1003])
def test_what_lasts_leaves_room_for_the_largest_of_a_caller(total: int) -> None:
    budget = MemoryBudget(total)
    with (
        budget.reserve("models", budget.lasting),
        budget.reserve("uploads", budget.largest, caller="anna"),
    ):
        assert sum(budget.reserved().values()) in {total, total - 1}


def test_who_holds_least_is_next() -> None:
    budget, order, lock = MemoryBudget(100), list[str](), Lock()
    first = budget.reserve("uploads", 70, caller="anna")
    budget.reserve("uploads", 5, caller="anna")
    budget.reserve("models", 15)

    def take(caller: str) -> None:
        with budget.reserve("uploads", 41, wait_seconds=600, caller=caller), lock:
            order.append(caller)

    threads = begin(budget, lambda: take("anna"), lambda: take("ben"))
    first.release()  # 80 are free: enough for one of them at a time
    for thread in threads:
        thread.join()
    assert order == ["ben", "anna"]
