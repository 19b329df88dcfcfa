"""Callers share the engine's time, as start-time fair queueing promises; a simulated clock."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.serving.admission import Admission
from app.serving.throughput import SpeedKey, Throughput
from app.serving.turns import Arrival, Turns
from core.exceptions import Unavailable

LONGEST = 1.0  # seconds of a slice


@dataclass(eq=False)
class Piece:
    """A waiting request, or what is left of one."""

    caller: str
    slices: list[float]
    arrival: Arrival
    is_large: bool = False


@dataclass
class Machine:
    """One engine; callers send a request whenever theirs is answered, if they have more."""

    turns: Turns
    left: dict[str, list[Piece]]
    seconds: float = 0.0

    def arrive(self, caller: str, slices: list[float], *, is_large: bool = False) -> None:
        came = self.turns.arrive(caller, self.seconds, is_large=is_large)
        self.left.setdefault(caller, []).append(Piece(caller, slices, came, is_large))

    def step(self) -> tuple[str, bool, float]:
        """Compute a slice: whose, of which kind, and its seconds."""
        waiting = [piece for own in self.left.values() for piece in own]
        piece = self.turns.next(waiting)
        assert piece is not None
        took = piece.slices.pop(0)
        self.turns.charge(piece, took)
        self.seconds += took
        if not piece.slices:
            self.left[piece.caller].remove(piece)
        return piece.caller, piece.is_large, took


SLICES = st.lists(st.floats(0.001, LONGEST), min_size=1, max_size=4)
REQUESTS = st.lists(SLICES, min_size=8, max_size=8)


@settings(max_examples=50, deadline=None)
@given(st.lists(REQUESTS, min_size=2, max_size=4))
def test_callers_whose_requests_wait_get_equal_seconds_to_within_a_slice_of_each(
    requests: list[list[list[float]]],
) -> None:
    """Theorem 1 of Goyal, Vin and Cheng with equal weights, at every moment."""
    machine, used = Machine(Turns(), {}), [0.0] * len(requests)
    for caller, own in enumerate(requests):
        for slices in own:
            machine.arrive(str(caller), list(slices))
    while all(machine.left[str(caller)] for caller in range(len(requests))):
        name, _, took = machine.step()
        used[int(name)] += took
        assert max(used) - min(used) <= 2 * LONGEST + 1e-9


PLAIN = SpeedKey("a", 0.0, is_closed=False, draws=False, explain=False, work=1)


STAYING: list[object] = []


def entered(admission: Admission, caller: str, rows: int = 1, count: int = 1000) -> int:
    """How many requests of a caller are admitted, which stay."""
    for number in range(count):
        one = admission.entered(PLAIN, rows, 100, 100 * rows, caller=caller)
        try:
            one.__enter__()
        except Unavailable:
            return number
        STAYING.append(one)  # a generator that nobody holds ends
    return count


def test_a_caller_over_its_share_of_large_requests_is_refused_and_another_let_in() -> None:
    throughput = Throughput()
    throughput.observe(PLAIN, 1, 100, 0.001)
    admission = Admission(10**9, throughput, max_seconds=2.0)
    assert entered(admission, "greedy", rows=2400) == 1, "2.4 s: alone, whatever it takes"
    assert entered(admission, "small", rows=10) > 50, "they go between its slices"
    assert entered(admission, "polite", rows=2400) == 1
    assert entered(admission, "third", rows=300, count=1) == 1
    assert entered(admission, "fourth", rows=2400) == 0, "they would wait for 5.1 s"


def test_queued_work_leaves_room_for_a_caller_who_has_none() -> None:
    admission = Admission(1000, Throughput())
    assert entered(admission, "greedy", rows=3) == 3, "900 of 1000 rows × samples"
    assert entered(admission, "polite", rows=3) == 1
    with pytest.raises(Unavailable, match="1200 rows × samples wait already, 900 of them yours"):
        admission.entered(PLAIN, 3, 100, 300, caller="greedy").__enter__()


def test_an_explained_row_takes_as_long_as_the_rows_that_are_predicted_for_it_at_once() -> None:
    """Most of the time of a row alone is that of the call, which those rows share."""
    throughput = Throughput()
    throughput.observe(PLAIN, 1, 100, 0.01)
    throughput.observe(PLAIN, 64, 100, 0.064)
    explained = PLAIN._replace(explain=True, work=9)  # for about 384 rows
    assert throughput.seconds(explained, 2, 100) == pytest.approx(2 * 384 * 0.001)
