"""Child processes: what they return, their limits, what they leave; and what does not move."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.exceptions import Invalid, NotParseable, TooLarge
from core.process.confined import Limits, run
from core.process.scratch import Scratch
from core.process.watch import Watch
from tests.waiting import PATIENCE, wait_until

HERE = f"{__name__}:child"
SMALL = Limits(memory_bytes=2**28, output_bytes=2**20, cpu_seconds=60)  # its imports take some


def child(file: Any, what: str, names: Sequence[str] = ()) -> dict[str, Any]:
    """What the child does in these tests."""
    match what:
        case "writes":
            file.write(b"some bytes")
            return dict(os.environ)
        case "returns":
            return {"names": len(names)}
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


def test_arguments_may_be_longer_than_a_command_line() -> None:
    """A query of 100,000 letters, or the names of 10,000 files."""
    outcome = run(HERE, {"what": "returns", "names": ["é" * 100] * 10_000}, SMALL, "it")
    assert outcome.answer == {"names": 10_000}


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


OTHER = """
import sys
from pathlib import Path
from core.process.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.path / "half.arrow").write_text("half of something")
print(scratch.path, flush=True)
sys.stdin.read()
"""


@pytest.mark.stack
def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path: Path) -> None:
    own = Scratch(tmp_path)
    (own.path / "mine").touch()
    command = [sys.executable, "-c", OTHER, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        folder = Path(other.stdout.readline().strip())
        own.remove_leftovers()
        assert (folder / "half.arrow").exists()
        other.kill()
        other.wait()
    own.remove_leftovers()
    assert not folder.exists()
    assert (own.path / "mine").exists()
    own.close()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


HANGING = """
import subprocess, sys, threading, time
from core.process.ending import leave

child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid)
threading.Thread(target=time.sleep, args=[600]).start()  # the interpreter would join it
leave(int(sys.argv[1]))
"""


def has_ended(process: int) -> bool:
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.stack
def test_neither_a_thread_nor_a_child_keeps_a_process_that_leaves() -> None:
    for code in (0, 3):
        command = [sys.executable, "-c", HANGING, str(code)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        child = int(done.stdout)  # written although nothing flushed it
        wait_until(lambda child=child: has_ended(child))  # the kernel takes a moment for that
