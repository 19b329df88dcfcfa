"""Temporary files of real processes: of the living they stay, of the killed they go."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from core.process.scratch import Scratch
from tests.waiting import wait_until

pytestmark = pytest.mark.stack

OTHER = """
import sys
from pathlib import Path
from core.process.scratch import Scratch
scratch = Scratch(Path(sys.argv[1]))
(scratch.path / "half.arrow").write_text("half of something")
print(scratch.path, flush=True)
sys.stdin.read()
"""


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


def test_neither_a_thread_nor_a_child_keeps_a_process_that_leaves() -> None:
    for code in (0, 3):
        command = [sys.executable, "-c", HANGING, str(code)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        child = int(done.stdout)  # written although nothing flushed it
        wait_until(lambda child=child: has_ended(child))  # the kernel takes a moment for that
