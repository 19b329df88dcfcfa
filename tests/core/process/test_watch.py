"""What stays the same is found after its time, by a clock that the test turns."""

from core.process.watch import Watch


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_only_what_was_the_same_in_every_look_for_so_long_is_found() -> None:
    clock = Clock()
    watched: Watch[str, int] = Watch(10, clock)
    assert watched.unchanged({"still": 1, "moves": 1, "leaves": 1}) == {}
    clock.seconds = 6
    assert watched.unchanged({"still": 1, "moves": 2}) == {}
    clock.seconds = 10
    assert watched.unchanged({"still": 1, "moves": 2, "leaves": 1}) == {"still": 1}
    clock.seconds = 16
    assert watched.unchanged({"moves": 2, "leaves": 1}) == {"moves": 2}
    clock.seconds = 1000  # a pause of the one who looks takes nothing that moved meanwhile
    assert watched.unchanged({"moves": 3}) == {}


def test_who_could_not_look_begins_anew() -> None:
    clock = Clock()
    watched: Watch[str, int] = Watch(10, clock)
    watched.unchanged({"still": 1})
    watched.forget()
    clock.seconds = 11
    assert watched.unchanged({"still": 1}) == {}
    clock.seconds = 21
    assert watched.unchanged({"still": 1}) == {"still": 1}
