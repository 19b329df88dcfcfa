"""Child processes: what they return, and their limits; and what does not move."""

import os
import signal
import sys
from dataclasses import replace
from typing import Any

import psutil
import pytest

from core.exceptions import Invalid, NotParseable, TooLarge
from core.process.confined import Limits, run
from core.process.watch import Watch
from tests.waiting import PATIENCE, wait_until

HERE = f"{__name__}:child"
SMALL = Limits(memory_bytes=2**28, output_bytes=2**20, cpu_seconds=60)  # its imports take some


def child(file: Any, what: str) -> dict[str, Any]:
    """What the child does in these tests."""
    match what:
        case "writes":
            file.write(b"some bytes")
            return dict(os.environ)
        case "allocates":
            bytearray(2**29)
        case "fills":
            for _ in range(2**6):
                file.write(bytes(2**16))
        case "computes":
            while True:
                pass
        case "SIGSEGV" | "SIGABRT":
            os.kill(os.getpid(), signal.Signals[what])
        case "refuses":
            raise Invalid([("/columns/a", "is wrong")])
    return {}


def test_what_it_returns_and_writes_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENCE_SECRET", "x")
    outcome = run(HERE, {"what": "writes"}, SMALL, "it")
    assert "PATH" in outcome.answer
    assert "CREDENCE_SECRET" not in outcome.answer
    assert bytes(outcome.output) == b"some bytes"


def test_what_it_raises_is_raised_here() -> None:
    with pytest.raises(Invalid, match="/columns/a: is wrong"):
        run(HERE, {"what": "refuses"}, SMALL, "it")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("allocates", "the book takes more than 268435456 bytes of memory"),
        ("fills", "or gives more than 1048576 bytes"),
        ("SIGABRT", "more than 268435456 bytes"),
        pytest.param("computes", "takes more than 1 seconds", marks=pytest.mark.stack),
    ],
)
def test_limits_are_refusals(what: str, message: str) -> None:
    limits = replace(SMALL, cpu_seconds=1) if what == "computes" else SMALL
    with pytest.raises(TooLarge, match=message):
        run(HERE, {"what": what}, limits, "the book")


def test_a_crash_is_a_damaged_file() -> None:
    with pytest.raises(NotParseable, match="the book"):
        run(HERE, {"what": "SIGSEGV"}, SMALL, "the book")


@pytest.mark.stack
def test_it_ends_with_its_parent() -> None:
    """A parent that is killed leaves no child behind."""
    code = (
        f"from {__name__} import *; run(HERE, {{'what': 'computes'}}, Limits(2**28, 1, 600), 'it')"
    )
    parent = psutil.Popen([sys.executable, "-c", code])
    wait_until(parent.children)
    children = parent.children()
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive


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
