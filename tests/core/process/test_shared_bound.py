"""Dynamic thresholds: what callers hold when all take as much as they may, by the closed form."""

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
