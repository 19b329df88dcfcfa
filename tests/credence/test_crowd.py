"""How many predictions are let in at once."""

from credence.serving.crowd import FEW, MOST, Crowd


def test_a_crowd_is_as_many_as_are_answered_in_time() -> None:
    """Ten milliseconds each: of two seconds' worth, the 201st is one too many."""
    crowd = Crowd(max_seconds=2.0)
    for _ in range(MOST - 1):
        crowd.enter(0.0)
    assert not crowd.is_full, "no pace is known yet"
    crowd.enter(0.0)
    assert crowd.is_full
    for i in range(1, MOST - 200 + 1):
        crowd.leave(0.01 * i)
    assert 1.99 < crowd.wait_seconds < 2.01
    for _ in range(2):
        crowd.enter(8.0)
    assert crowd.is_full
    for _ in range(4):
        crowd.leave(8.0)
    assert not crowd.is_full


def test_few_are_always_let_in() -> None:
    crowd = Crowd(max_seconds=0.1)
    for _ in range(FEW + 31):
        crowd.enter(0.0)
    for i in range(32):
        crowd.leave(float(i))
    assert crowd.wait_seconds > 50
    assert not crowd.is_full
    crowd.enter(32.0)
    assert crowd.is_full
