"""Functions in children with limits: what they return, raise, and may not take."""

import os
import signal
import sys
import time
from typing import Any

import psutil
import pytest

from core.exceptions import Invalid, NotParseable, TooLarge
from core.process.confined import Limits, run

HERE = f"{__name__}:child"
SMALL = Limits(memory_bytes=2**28, output_bytes=2**20, cpu_seconds=1)


def child(file: Any, what: str) -> dict[str, Any]:
    """What the child does in these tests."""
    match what:
        case "writes":
            file.write(b"some bytes")
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
        case "environment":
            return dict(os.environ)
    return {"done": what}


pytestmark = pytest.mark.process


def test_what_it_returns_and_writes_comes_back() -> None:
    outcome = run(HERE, {"what": "writes"}, SMALL, "it")
    assert outcome.answer == {"done": "writes"}
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
        ("computes", "takes more than 1 seconds"),
    ],
)
def test_limits_are_refusals(what: str, message: str) -> None:
    with pytest.raises(TooLarge, match=message):
        run(HERE, {"what": what}, SMALL, "the book")


def test_a_crash_is_a_damaged_file() -> None:
    with pytest.raises(NotParseable, match="the book is damaged"):
        run(HERE, {"what": "SIGSEGV"}, SMALL, "the book")


def test_it_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREDENCE_SECRET", "x")
    answer = run(HERE, {"what": "environment"}, SMALL, "it").answer
    assert not [name for name in answer if name.startswith("CREDENCE")]


def test_it_ends_with_its_parent() -> None:
    """A parent that is killed leaves no child behind."""
    code = (
        f"from {__name__} import *; run(HERE, {{'what': 'computes'}}, Limits(2**28, 1, 60), 'it')"
    )
    parent = psutil.Popen([sys.executable, "-c", code])
    children: list[psutil.Process] = []
    deadline = time.monotonic() + 30
    while not children and time.monotonic() < deadline:
        children = parent.children()
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert children
    assert not alive
