"""Memory and places: shared between callers, bounded by what the machine has, given back."""

import os
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from threading import Lock, Thread

import psutil
import pytest

from core.exceptions import Unavailable
from core.process.memory_budget import RETRY_AFTER_SECONDS, MemoryBudget
from core.process.resources import available_bytes, available_cores
from core.process.shared_bound import SharedBound
from tests.core.conftest import at_once
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


def filled(bound: SharedBound, callers: int) -> list[int]:
    """What callers hold who each take one, in turns, as long as any may."""
    while any(has_room := [bound.has_room(i) for i in range(callers)]):
        for i in range(callers):
            if has_room[i] and bound.has_room(i):
                bound.change(i, 1)
    return [bound.of(i) for i in range(callers)]


@pytest.mark.parametrize(("part", "callers"), [(1, 1), (1, 10), (3, 2), (3, 3)])
def test_all_get_the_same_and_leave_room_for_one_more(part: int, callers: int) -> None:
    """The fixed point is part × total ÷ (1 + part × callers): Choudhury and Hahne, equation 3."""
    bound = SharedBound(12_000, part)
    each = Fraction(part * 12_000, 1 + part * callers)
    held = filled(bound, callers)
    assert all(abs(one - each) <= 1 for one in held)
    assert bound.has_room("another", int(each) // (2 + part))
    for caller, one in enumerate(held):
        bound.change(caller, -one)
    assert (bound.held, dict(bound._held)) == (0, {}), "what is given back is free again"


def test_a_caller_that_came_first_does_not_keep_others_out() -> None:
    bound = SharedBound(100)
    while bound.has_room("first"):
        bound.change("first", 1)
    assert bound.of("first") == 50
    while bound.has_room("second"):
        bound.change("second", 1)
    assert bound.of("second") == 25
    assert not bound.has_room("first")
    bound.change("first", -50)
    assert bound.has_room("first", 25)
    assert not bound.has_room("first", 38)


MASK = len(os.sched_getaffinity(0))
MACHINE = psutil.virtual_memory().total


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("max 100000", MASK),
        ("150000 100000", 1),
        ("5000 100000", 1),
        (f"{100000 * (MASK + 8)} 100000", MASK),
    ],
)
def test_cores_of_version_2(tmp_path: Path, text: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(text + "\n")
    assert available_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", MASK), ("100000", 1), ("99999", 1)])
def test_cores_of_version_1(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert available_cores(tmp_path) == cores


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_the_smaller_memory_counts(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    for text, found in (("max", MACHINE), ("1048576", 2**20), (str(2**60), MACHINE)):
        path.write_text(text + "\n")
        assert available_bytes(tmp_path) == found
