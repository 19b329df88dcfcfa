"""Dynamic thresholds: what callers hold when all take as much as they may, by the closed form."""

import random
from fractions import Fraction

import pytest

from core.process.shared_bound import SharedBound


def filled(bound: SharedBound, callers: int) -> list[int]:
    """What callers hold who each take one, in turns, as long as any may."""
    while any(has_room := [bound.has_room(i) for i in range(callers)]):
        for i in range(callers):
            if has_room[i] and bound.has_room(i):
                bound.change(i, 1)
    return [bound.of(i) for i in range(callers)]


@pytest.mark.parametrize("part", [1, 3])
@pytest.mark.parametrize("callers", [1, 2, 3, 10])
def test_all_get_the_same_and_leave_room_for_one_more(part: int, callers: int) -> None:
    """The fixed point is part × total ÷ (1 + part × callers): Choudhury and Hahne, equation 3."""
    total = 12_000
    bound = SharedBound(total, part)
    each = Fraction(part * total, 1 + part * callers)
    held = filled(bound, callers)
    assert all(abs(one - each) <= 1 for one in held)
    assert bound.has_room("another", int(each) // (2 + part))


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


def test_what_is_given_back_is_free_again() -> None:
    bound, random_ = SharedBound(50), random.Random(0)
    held = list[int]()
    for _ in range(2000):
        if held and random_.random() < 0.5:
            bound.change(held.pop(), -1)
        elif bound.has_room(caller := random_.randrange(4)):
            bound.change(caller, 1)
            held.append(caller)
        assert bound.held == len(held) <= bound.total
    for caller in held:
        bound.change(caller, -1)
    assert (bound.held, dict(bound._held)) == (0, {})
