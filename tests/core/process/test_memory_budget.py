"""The budget of memory: all or nothing, in order, for a limited time."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock, Thread

import pytest

from core.exceptions import Unavailable
from core.process.memory_budget import RETRY_AFTER_SECONDS, MemoryBudget
from tests.waiting import wait_until


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
    message = "this needs 41 bytes of memory, and 40 of 100 are free (CREDENCE_MEMORY_BYTES)"
    assert message in str(refused.value)
    assert refused.value.retry_after_seconds == RETRY_AFTER_SECONDS
    assert sum(budget.reserved().values()) == 0


def test_more_than_there_ever_is_does_not_wait_for_ever() -> None:
    with pytest.raises(Unavailable):
        MemoryBudget(100).reserve("uploads", 101, wait_seconds=0.01)


def test_a_large_one_that_waits_is_not_passed_by_small_ones() -> None:
    budget, order, lock = MemoryBudget(100), list[str](), Lock()
    first = budget.reserve("uploads", 60)

    def take(name: str, num_bytes: int) -> None:
        with budget.reserve("uploads", num_bytes, wait_seconds=60), lock:
            order.append(name)

    large = Thread(target=take, args=("large", 90))
    large.start()
    wait_until(lambda: len(budget._waiting) == 1)
    small = Thread(target=take, args=("small", 20))  # would fit now
    small.start()
    wait_until(lambda: len(budget._waiting) == 2)
    first.release()
    large.join(60)
    small.join(60)
    assert order == ["large", "small"]


def test_who_gives_up_lets_the_next_one_go_on() -> None:
    budget, taken = MemoryBudget(100), Event()
    with budget.reserve("uploads", 60):

        def give_up() -> None:
            with pytest.raises(Unavailable):
                budget.reserve("uploads", 90, wait_seconds=0.2)

        def follow() -> None:
            with budget.reserve("uploads", 20, wait_seconds=60):
                taken.set()

        threads = [Thread(target=give_up)]
        threads[0].start()
        wait_until(lambda: len(budget._waiting) == 1)
        threads.append(Thread(target=follow))
        threads[1].start()
        assert taken.wait(60)
        for thread in threads:
            thread.join(60)


def test_whatever_the_mix_the_total_is_never_passed() -> None:
    """200 threads: the sum of what all hold at once is counted beside the budget."""
    budget, lock, held, most = MemoryBudget(1000), Lock(), [0], [0]
    random_ = random.Random(0)
    sizes = [random_.choice((1, 10, 100, 750)) for _ in range(200)]

    def take(num_bytes: int) -> bool:
        try:
            reservation = budget.reserve("uploads", num_bytes, random_.choice((0.0, 0.5)))
        except Unavailable:
            return False
        with reservation:
            with lock:
                held[0] += num_bytes
                most[0] = max(most[0], held[0])
            with lock:
                held[0] -= num_bytes
        return True

    with ThreadPoolExecutor(200) as threads:
        done = list(threads.map(take, sizes))
    assert any(done)
    assert most[0] <= budget.total
    assert sum(budget.reserved().values()) == 0
    assert not budget._waiting


def test_what_lasts_leaves_room_for_the_largest() -> None:
    budget = MemoryBudget(1000)
    with budget.reserve("models", budget.lasting), budget.reserve("uploads", budget.largest):
        assert sum(budget.reserved().values()) == budget.total


@pytest.mark.parametrize("total", [1000, 1001, 1002, 1003])
def test_the_largest_fits_into_the_part_of_a_caller(total: int) -> None:
    budget = MemoryBudget(total)
    with budget.reserve("uploads", budget.largest, caller="anna"):
        assert budget.lasting + budget.largest in {total, total - 1}


def test_a_caller_alone_gets_all_that_does_not_last() -> None:
    budget = MemoryBudget(1000)
    with budget.reserve("uploads", budget.largest, caller="anna"):
        with pytest.raises(Unavailable, match="which callers share; your requests hold 750"):
            budget.reserve("uploads", 1, caller="anna")
        with budget.reserve("uploads", 100, caller="ben"):
            pass


def test_callers_share_and_nobody_s_bytes_are_not_counted() -> None:
    """With a part of 3, two callers hold at most three sevenths each."""
    budget = MemoryBudget(700)
    for _ in range(3):
        budget.reserve("uploads", 100, caller="anna")
        budget.reserve("uploads", 100, caller="ben")
    for caller in ("anna", "ben"):
        with pytest.raises(Unavailable):
            budget.reserve("uploads", 10, caller=caller)
    budget.reserve("models", 100)


def test_who_holds_least_is_next() -> None:
    budget, order, lock = MemoryBudget(100), list[str](), Lock()
    first = budget.reserve("uploads", 70, caller="anna")

    def take(caller: str) -> None:
        with budget.reserve("uploads", 41, wait_seconds=60, caller=caller), lock:
            order.append(caller)

    threads = []
    others = budget.reserve("uploads", 5, caller="anna"), budget.reserve("models", 15)
    for number, caller in enumerate(("anna", "ben"), 1):
        threads.append(Thread(target=take, args=(caller,)))
        threads[-1].start()
        wait_until(lambda number=number: len(budget._waiting) == number)
    first.release()  # 80 are free: enough for one of them at a time
    for thread in threads:
        thread.join(60)
    assert order == ["ben", "anna"]
    for one in others:
        one.release()
